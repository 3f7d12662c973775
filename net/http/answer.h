#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lsp/json_rpc.h"
#include "net/http/request.h"

namespace efimd::http {

/// An HTTP answer, but for the fields that the connection adds.
struct Answer {
  unsigned status = 200;
  std::string type = "application/json; charset=utf-8";
  std::string body;
  std::vector<std::string> ignored = {};  ///< of the request, for the header Efimd-Ignored
};

/// What the daemon said to a request.
struct Completed {
  std::string text;  ///< to be inserted at the cursor; empty: nothing is suggested
  /// Of efim/receipt; null where the daemon sent none.
  lsp::Json receipt;
  double total_ms = 0;  ///< as seen from here
};

/// What an item inserts at the cursor, if the client can only insert. `covered` is text after the
/// cursor that the item would replace: brackets that the editor closed, which stay where they are.
std::string insertable(std::string_view text, std::string_view covered);

/// `text` up to the first of `stops`; the one that ended it goes into `stop`.
std::string_view before_stops(std::string_view text, const std::vector<std::string>& stops,
                              std::string& stop);

/// The answer in the form that the request's clients parse. `model`: the name of the model in use,
/// for requests that name none. `created_s`: seconds since 1970.
///
/// A stream comes whole: the text in one chunk, then what ends it.
Answer answer_of(const CompletionRequest& request, const Completed& completed,
                 std::string_view model, std::int64_t created_s);

/// An error in the form of `form`; of llama-server's where there is none.
Answer refusal(unsigned status, std::string_view message, std::optional<Form> form = {});

/// "2026-11-23T19:00:00Z".
std::string timestamp(std::int64_t seconds);

}  // namespace efimd::http
