#include "daemon/completion/answer/open_texts.h"

namespace efimd::completion {

void OpenTexts::set(const DocumentKey& document, const TextHome& home,
                    const text::SnapshotPtr& snapshot) {
  if (index_ == nullptr) return;
  if (home.path.empty()) {
    if (const auto found = open_.find(document); found != open_.end()) {
      index_->forget(where_of(found->second.home));
      open_.erase(found);
    }
    return;
  }
  open_.insert_or_assign(document, Open{home, snapshot});
  index_->set_document(where_of(home), snapshot);
}

void OpenTexts::close(const DocumentKey& document) {
  const auto found = open_.find(document);
  if (found == open_.end()) return;
  const TextHome home = found->second.home;
  open_.erase(found);
  index_->close_document(where_of(home));
  for (const auto& [other, open] : open_)
    if (open.home.project == home.project && open.home.path == home.path)
      index_->set_document(where_of(home), open.snapshot);
}

}  // namespace efimd::completion
