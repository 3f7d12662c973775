#include "daemon/cli/commands/commands.h"

#include <cstdio>

#include "daemon/config/printable.h"

namespace efimd::service {

int failed(const Error& error) {
  std::fflush(stdout);  // what was printed comes first, also where both streams are one file
  std::fprintf(stderr, "efimd: %s\n", printable(error.message()).c_str());
  return 1;
}

}  // namespace efimd::service
