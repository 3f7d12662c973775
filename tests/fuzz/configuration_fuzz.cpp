// Whatever config.toml holds, each setting has a value, and what is wrong is said.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = efimd::service::parse_config(text, "/config.toml");
  if (config.idle_exit_s < 0 || config.completion.tokens_max < 0) std::abort();
  if (!config.file_read && config.warnings.empty()) std::abort();
  return 0;
}
