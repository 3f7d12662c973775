#include "daemon/completion/answer/turn.h"

#include "daemon/completion/answer/selected.h"
#include "daemon/prompt/places.h"
#include "daemon/recall/batch.h"

namespace efimd::completion {

CursorContext context_of(const Request& request, const text::Snapshot& snapshot,
                         std::size_t cursor) {
  const Language& language = language_of(request.language_id, request.document.uri);
  CursorContext context =
      context_at(snapshot, language, cursor, prompt::choose_resume(snapshot, cursor));
  if (request.selected) go_on_from(context, *request.selected);
  return context;
}

const CursorContext& Turn::context() const {
  if (!known_context) known_context.emplace(context_of(request(), snapshot(), cursor));
  return *known_context;
}

std::string language_of(const Request& request) {
  return recall::family_of(request.home.path.empty() ? request.document.uri : request.home.path);
}

}  // namespace efimd::completion
