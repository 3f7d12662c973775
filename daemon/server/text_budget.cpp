#include "daemon/server/text_budget.h"

namespace efimd::service {

bool TextBudget::change(std::uint64_t session, std::size_t before, std::size_t after) {
  std::size_t& own = of_session_[session];
  const bool fits =
      own - before + after <= kSessionBytesMax && bytes_ - before + after <= kBytesMax;
  if (fits || after <= before) {
    own = own - before + after;
    bytes_ = bytes_ - before + after;
  }
  if (own == 0) of_session_.erase(session);
  return fits || after <= before;
}

HeldText& HeldText::operator=(HeldText&& other) noexcept {
  if (this == &other) return *this;
  static_cast<void>(hold(0));
  budget_ = std::exchange(other.budget_, nullptr);
  session_ = other.session_;
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

bool HeldText::hold(std::size_t bytes) {
  if (budget_ == nullptr) return true;
  if (!budget_->change(session_, bytes_, bytes)) return false;
  bytes_ = bytes;
  return true;
}

}  // namespace efimd::service
