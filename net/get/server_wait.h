#pragma once

#include "net/get/transport.h"

namespace efimd::get {

/// Longer waits of a server are told, not waited for.
inline constexpr int kServerWaitMaxS = 300;

/// Seconds that a Retry-After header asks for, or a RateLimit header with nothing left; -1 if there is
/// none that can be read.
int asked_wait_s(const HttpHeaders& headers);
/// Waits; false if it was interrupted.
bool wait_ms(int milliseconds);

}  // namespace efimd::get
