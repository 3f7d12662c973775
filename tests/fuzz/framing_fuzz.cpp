// A stream gives the same bodies, and the same error, fed whole and byte by byte.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "lsp/framing.h"

using efimd::lsp::FrameReader;

namespace {

std::vector<std::string> outcome(std::string_view stream, std::size_t piece) {
  FrameReader reader;
  std::vector<std::string> seen;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    reader.feed(stream.substr(at, piece));
    for (auto body = reader.next(); !body || *body; body = reader.next()) {
      if (!body) {
        seen.emplace_back("error");
        return seen;
      }
      seen.push_back(std::move(**body));
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  if (outcome(stream, 1) != outcome(stream, size + 1)) std::abort();
  return 0;
}
