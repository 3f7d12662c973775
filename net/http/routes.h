#pragma once

#include <optional>
#include <string_view>

#include "net/http/request.h"

namespace efimd::http {

/// What a path asks for.
struct Route {
  enum class What {
    kCompletion,
    kHealth,
    kModels,
    kProps,
    kTags,
    kShow,
    kVersion,
    kNothing  ///< such as "/": only that somebody is there
  };
  std::string_view method;  ///< "GET" or "POST"; a GET may be a HEAD
  std::string_view path;
  What what = What::kNothing;
  Form form = Form::kInfill;  ///< of a completion, and of its errors
};

struct Routed {
  const Route* route = nullptr;  ///< null: see `status`
  unsigned status = 404;         ///< 404: no such path; 405: `allowed` is wanted
  std::string_view allowed = {};
};

/// `target`: the path, perhaps with a query, which is passed over.
Routed route_of(std::string_view method, std::string_view target);
/// Whose error a refusal is that comes before there is a route.
Form form_of_errors(std::string_view target);

}  // namespace efimd::http
