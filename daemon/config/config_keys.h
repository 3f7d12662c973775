#pragma once

#include <toml++/toml.h>

#include <span>
#include <string>
#include <string_view>

namespace efimd::service {

struct Config;

/// One key of config.toml as docs/configuration.md and the validation know it. config_keys() is the
/// only list of keys there is.
///
/// Thread: any; constants.
struct ConfigKey {
  std::string_view name;  ///< "completion.max_tokens"
  std::string_view type;  ///< "integer 1-4096"
  /// As written in TOML. `model.file` has none; its meaning says what is used.
  std::string_view default_value;
  std::string_view meaning;
  /// Puts the node's value into the configuration. False if it has another type or is out of the
  /// key's bounds. The configuration may then be changed in part.
  bool (*set)(Config&, const toml::node&);
};
std::span<const ConfigKey> config_keys();
/// nullptr if there is no such key.
const ConfigKey* find_config_key(std::string_view name);
/// Whether keys lie in the table `name`: "completion", "model.fim".
bool is_config_table(std::string_view name);
/// All of them as the table of docs/configuration.md.
std::string config_table();

}  // namespace efimd::service
