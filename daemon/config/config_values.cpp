#include "daemon/config/config_values.h"

#include <algorithm>

namespace efimd::service {

namespace {

constexpr std::size_t kTokenBytesMax = 128;

}  // namespace

bool number(const toml::node& node, double least, double most, float& target) {
  if (!node.is_number()) return false;
  const double value = *node.value<double>();
  if (!(value >= least && value <= most)) return false;  // NaN is refused too
  target = static_cast<float>(value);
  return true;
}

bool one_of(const toml::node& node, std::initializer_list<std::string_view> names,
            std::string& target) {
  const auto value = node.value<std::string_view>();
  if (!value || std::find(names.begin(), names.end(), *value) == names.end()) return false;
  target = *value;
  return true;
}

bool boolean(const toml::node& node, bool& target) {
  const auto* value = node.as_boolean();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

bool token(const toml::node& node, std::string& target) {
  const auto value = node.value<std::string_view>();
  if (!value || value->size() > kTokenBytesMax) return false;
  target = *value;
  return true;
}

bool line(const toml::node& node, std::string& target) {
  const auto value = node.value<std::string_view>();
  if (!value || value->size() > kLineBytesMax) return false;
  if (std::ranges::any_of(*value, [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return false;
  target = *value;
  return true;
}

bool address(const toml::node& node, std::string& target) {
  std::string value;
  if (!line(node, value)) return false;
  const bool is_http = value.starts_with("http://") || value.starts_with("https://");
  const std::size_t host = value.find("//") + 2, path = value.find_first_of("/?#", host);
  const bool has_user = is_http && value.substr(host, path - host).find('@') != std::string::npos;
  if (!value.empty() && (!is_http || has_user || host >= value.size() || path == host ||
                         value.find_first_of(" ?#") != std::string::npos))
    return false;
  target = std::move(value);
  return true;
}

}  // namespace efimd::service
