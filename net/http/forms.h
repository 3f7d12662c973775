#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http/answer.h"

namespace efimd::http {

/// A request's answer before it has a form.
struct Told {
  const CompletionRequest& request;
  const Completed& completed;
  std::string text;
  std::string stop;  ///< of the request's, that ended the text
  std::string model;
};

// The request's form of it: whole, or some text of it and then its end.
std::string whole_of(const Told& told);
std::string piece_of(const Told& told, std::string_view text);
std::string end_of(const Told& told);

/// "2026-11-23T19:00:00Z".
std::string timestamp(std::int64_t seconds);

}  // namespace efimd::http
