#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "lsp/json_rpc.h"

namespace efimd::lsp {

/// The first fault of a message. After a fault, the readers below go on with harmless values. So a
/// parse is a plain list of its fields and checks for faults once, at its end.
class Reading {
 public:
  void refuse(std::string what) {
    if (!error_) error_ = Error{Fault::kBadInput, std::move(what), ""};
  }
  template <class T>
  Result<T> finish(T&& value) {
    if (error_) return tl::unexpected(std::move(*error_));
    return std::forward<T>(value);
  }

 private:
  std::optional<Error> error_;
};

/// One place in a message, present or not, with its path for errors ("params.position.line").
///
/// Lives only while `params` and the Reading do. An absent member and a null one are the same. An
/// empty array passes for an empty object, because Lua clients write one so.
class Field {
 public:
  Field(Reading& reading, const Json& value, std::string path)
      : reading_(&reading), value_(value.is_null() ? nullptr : &value), path_(std::move(path)) {}

  bool there() const { return value_ != nullptr; }
  const Json& json() const;  ///< null if absent
  const std::string& path() const { return path_; }

  /// Refuses anything that is neither an object nor absent.
  Field member(std::string_view name) const;
  std::size_t array_size() const;
  Field element(std::size_t index) const;

  // Required values: absent is refused.
  std::string string(std::size_t bytes_max) const;
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  // Values that may be absent.
  std::optional<std::string> optional_string(std::size_t bytes_max) const;
  std::optional<std::int64_t> optional_integer(std::int64_t min, std::int64_t max) const;
  std::optional<double> optional_number(double min, double max) const;
  std::optional<bool> optional_boolean() const;

  /// Records "<path> must be <expected>, not <what is there>".
  void refuse(std::string_view expected) const;

 private:
  Field(Reading& reading, const Json* value, std::string path)
      : reading_(&reading), value_(value), path_(std::move(path)) {}

  Reading* reading_;
  const Json* value_;
  std::string path_;
};

}  // namespace efimd::lsp
