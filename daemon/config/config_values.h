#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace efimd::service {

// Values of config.toml of the kinds that several keys have. Each returns false, and leaves `target`
// as it was, if the node has another type or is out of bounds.

/// An integer in [least, most].
template <class Int>
bool integer(const toml::node& node, std::int64_t least, std::int64_t most, Int& target) {
  const auto* value = node.as_integer();
  if (value == nullptr || value->get() < least || value->get() > most) return false;
  target = static_cast<Int>(value->get());
  return true;
}

/// A number (integers convert) in [least, most].
bool number(const toml::node& node, double least, double most, float& target);
/// One of the names.
bool one_of(const toml::node& node, std::initializer_list<std::string_view> names,
            std::string& target);
bool boolean(const toml::node& node, bool& target);
/// A token as a vocabulary spells it.
bool token(const toml::node& node, std::string& target);
/// A text without control characters, of at most kLineBytesMax bytes.
bool line(const toml::node& node, std::string& target);
inline constexpr std::size_t kLineBytesMax = 4096;
/// An http or https address without a user's name in it, or nothing.
bool address(const toml::node& node, std::string& target);

}  // namespace efimd::service
