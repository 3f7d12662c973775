#include "daemon/config/version.h"

namespace efimd::service {

const char* version() { return EFIMD_VERSION; }

}  // namespace efimd::service
