#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace efimd::service {

/// How much text editors may have open: of one session, and of all. Past it a document is not
/// completed, like one that is too large.
///
/// Thread: io. Outlives every HeldText.
class TextBudget {
 public:
  static constexpr std::size_t kSessionBytesMax = std::size_t{256} << 20;
  static constexpr std::size_t kBytesMax = std::size_t{512} << 20;

  std::size_t bytes() const { return bytes_; }

 private:
  friend class HeldText;
  /// False, and nothing changed, if there is no room for `after` bytes in place of `before`.
  bool change(std::uint64_t session, std::size_t before, std::size_t after);

  std::size_t bytes_ = 0;
  std::map<std::uint64_t, std::size_t> of_session_;
};

/// The room that one document takes in a TextBudget; given back at its end.
class HeldText {
 public:
  HeldText() = default;
  HeldText(TextBudget& budget, std::uint64_t session) : budget_(&budget), session_(session) {}
  HeldText(HeldText&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)),
        session_(other.session_),
        bytes_(std::exchange(other.bytes_, 0)) {}
  HeldText& operator=(HeldText&& other) noexcept;
  ~HeldText() { static_cast<void>(hold(0)); }

  /// False, and the room is what it was, if `bytes` are too many.
  [[nodiscard]] bool hold(std::size_t bytes);

 private:
  TextBudget* budget_ = nullptr;
  std::uint64_t session_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace efimd::service
