#pragma once

namespace efimd::service {

/// The project's version. An object of its own, so that tests can link a second build cheaply.
const char* version();

}  // namespace efimd::service
