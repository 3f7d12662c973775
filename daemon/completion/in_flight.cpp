#include "daemon/completion/in_flight.h"

#include <algorithm>
#include <utility>

namespace efimd::completion {

void InFlight::began() {
  const std::lock_guard lock(mutex_);
  ++count_;
}

void InFlight::ended() {
  const std::lock_guard lock(mutex_);
  if (--count_ == 0) none_.notify_all();
}

void InFlight::wait_for_none(std::chrono::nanoseconds most) {
  std::unique_lock lock(mutex_);
  none_.wait_for(lock, most, [&] { return count_ == 0; });
}

MakingWay::MakingWay(std::shared_ptr<InFlight> requests) : requests_(std::move(requests)) {}

void MakingWay::between_pieces() {
  if (!requests_ || !requests_->any()) return;
  const Clock::time_point now = Clock::now();
  const Clock::duration worked = now - begin_ - waited_;
  const Clock::duration left = kWaitPerWork * worked + kWaitMin - waited_;
  if (left <= Clock::duration::zero()) return;
  requests_->wait_for_none(std::min<Clock::duration>(left, kWaitMax));
  waited_ += Clock::now() - now;
}

}  // namespace efimd::completion
