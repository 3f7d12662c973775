#include "daemon/files/served_uris.h"

#include <utility>

namespace efimd::service {

bool ServedUris::use(std::string_view uri) {
  if (const auto found = places_.find(uri); found != places_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    return false;
  }
  order_.emplace_front(uri);
  places_.emplace(order_.front(), order_.begin());
  bytes_ += uri.size() + kEntryBytes;
  return true;
}

void ServedUris::erase(std::string_view uri) {
  const auto found = places_.find(uri);
  if (found == places_.end()) return;
  const auto place = found->second;
  bytes_ -= place->size() + kEntryBytes;
  places_.erase(found);
  order_.erase(place);
}

std::optional<std::string> ServedUris::take_excess() {
  if (bytes_ <= bytes_max_ || order_.size() < 2) return std::nullopt;
  const std::string oldest = order_.back();
  erase(oldest);
  return oldest;
}

}  // namespace efimd::service
