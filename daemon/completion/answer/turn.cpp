#include "daemon/completion/answer/turn.h"

#include "daemon/completion/answer/selected.h"
#include "daemon/prompt/places.h"

namespace efimd::completion {

CursorContext context_of(const Request& request, const text::Snapshot& snapshot,
                         std::size_t cursor) {
  const Language& language = language_of(request.language_id, request.document.uri);
  CursorContext context =
      context_at(snapshot, language, cursor, prompt::choose_resume(snapshot, cursor));
  if (request.selected) go_on_from(context, *request.selected);
  return context;
}

}  // namespace efimd::completion
