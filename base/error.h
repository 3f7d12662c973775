#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace efimd {

/// The kind of a failure, for code that must decide; people read Error::message().
enum class Fault {
  kBadInput,     ///< a file, frame or option is malformed
  kUnsupported,  ///< well-formed, but not something this build can do
  kNotFound,
  kIo,
  kNoMemory,
  kWindowFull,  ///< more tokens than the model's context or the KV budget hold
  kStopped,     ///< the caller's stop token fired
  kNotReady,    ///< still loading, or shutting down
  kDeviceLost,
};

/// A failure as the user sees it: what failed and where, then what to do about it.
struct Error {
  Fault fault = Fault::kBadInput;
  std::string what;    ///< "model.gguf: tensor blk.3.ffn_up.weight ends past the file's end"
  std::string remedy;  ///< "download the file again"; empty if there is nothing to do

  std::string message() const { return remedy.empty() ? what : what + "; " + remedy; }
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Fault fault, std::string what, std::string remedy = {}) {
  return tl::unexpected<Error>(Error{fault, std::move(what), std::move(remedy)});
}

}  // namespace efimd
