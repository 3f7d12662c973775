#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lsp/json_rpc.h"
#include "net/http/answer.h"
#include "net/http/fim_split.h"

namespace efimd::http {

/// What efim/status says of the model, as other servers' clients want to hear it.
///
/// Thread: any; a value.
class ModelPages {
 public:
  /// `status`: the answer to efim/status; null before there is one. `started_s`: seconds since 1970
  /// when this server started, for what asks when the model was made.
  explicit ModelPages(lsp::Json status = nullptr, std::int64_t started_s = 0);

  /// Whether completions can be had: the model is loaded.
  bool ready() const;
  /// Why not; empty while it loads.
  std::string failure() const;
  std::string name() const;
  /// The marks of the model; nullopt if the daemon does not say them.
  std::optional<FimMarks> marks() const;

  Answer health() const;          ///< GET /health, /v1/health
  Answer models() const;          ///< GET /v1/models, /models
  Answer props() const;           ///< GET /props
  Answer tags() const;            ///< GET /api/tags
  Answer show() const;            ///< POST /api/show
  Answer server_version() const;  ///< GET /api/version

 private:
  lsp::Json status_;
  std::int64_t started_s_;
};

}  // namespace efimd::http
