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
  std::string allowed = {};               ///< methods, for the header Allow of a 405
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

/// Bytes of `text` that are the answer's whatever follows it: none of `stops` may begin in them.
std::size_t sayable(std::string_view text, const std::vector<std::string>& stops);

/// The answer in the form that the request's clients parse. `model`: the name of the model in use,
/// for requests that name none. A stream is in one piece here.
Answer answer_of(const CompletionRequest& request, const Completed& completed,
                 std::string_view model);

// The same in pieces, of which the first come before the answer is known.
const char* stream_type(Form form);
std::string stream_piece(const CompletionRequest& request, std::string_view text,
                         std::string_view model);
/// What follows the pieces, whose text is `said`.
std::string stream_end(const CompletionRequest& request, const Completed& completed,
                       std::string_view said, std::string_view model);
/// In place of stream_end(), if the answer failed after a piece.
std::string stream_error(std::string_view message, unsigned status, Form form);

/// An error in the form of `form`; of llama-server's where there is none.
Answer refusal(unsigned status, std::string_view message, std::optional<Form> form = {});

}  // namespace efimd::http
