#include "daemon/files/project_update.h"

#include <utility>

namespace efimd::service {

void apply(const ProjectUpdate& update, recall::Index& index) {
  for (const std::string& path : update.removed) index.remove_file({update.project, path});
  if (update.merge)
    index.take_merged(*update.merge, update.files);
  else if (update.files)
    index.add_files(update.project, update.files);
  for (const recall::Dropped& dropped : index.take_dropped())
    if (update.dropper) update.dropper(dropped);
  if (!update.merger) return;
  if (auto merge = index.merge_wanted()) update.merger(std::move(*merge));
}

}  // namespace efimd::service
