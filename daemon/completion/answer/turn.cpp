#include "daemon/completion/answer/turn.h"

#include "daemon/completion/fit/selected.h"
#include "daemon/prompt/places.h"
#include "daemon/recall/batch.h"

namespace efimd::completion {

CursorContext context_of(const Request& request, const text::Snapshot& snapshot,
                         std::size_t cursor) {
  const Language& language = language_of(request.language_id, request.document.uri);
  CursorContext context =
      context_at(snapshot, language, cursor, prompt::choose_resume(snapshot, cursor));
  context.grammar = syntax::grammar_of(request.document.uri);
  if (request.selected) go_on_from(context, *request.selected);
  return context;
}

const CursorContext& Turn::context() const {
  if (!known_context) known_context.emplace(context_of(request(), snapshot(), cursor));
  return *known_context;
}

void Turn::note_window(const prompt::Anchor& anchor) {
  receipt.view = prompt::view_name(anchor.view);
  receipt.shown = prompt::shown_part(anchor, snapshot(), cursor);
  receipt.before_tokens = static_cast<int>(anchor.before.size());
  receipt.typed_tokens = static_cast<int>(anchor.increment.size());
  receipt.after_tokens = static_cast<int>(anchor.after.size());
  receipt.edit_tokens = static_cast<int>(anchor.edits.size());
  receipt.head_files = anchor.path.other_files;
  receipt.head_tokens = anchor.path.other_tokens;
}

std::string language_of(const Request& request) {
  const std::string& path = request.home.path.empty() ? request.document.uri : request.home.path;
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  // It is written down (taste_keeper.h), so that it must not be a file's own name.
  return name.find('.') == std::string_view::npos ? "other" : recall::family_of(path);
}

}  // namespace efimd::completion
