#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "daemon/completion/request.h"

namespace efimd::completion {

/// What a user did with a suggestion that was shown.
enum class Verdict { kAccepted, kTypedThrough, kIgnored, kRejected };

/// How the user takes suggestions in one language.
struct TasteRow {
  double accepted = 0, typed_through = 0, ignored = 0, rejected = 0;  ///< older ones count less
  double shift = 0;  ///< added to the log-odds of a chance, so that chances come true for this user
  double shown() const { return accepted + typed_through + ignored + rejected; }
};

/// How the user takes suggestions, by language (recall::family_of). What is shown follows it:
/// the chances of recalled text are shifted until they come true. Eagerness "auto" is low where most
/// suggestions are rejected, and high where most are taken.
///
/// Holds counts and names of languages, no text.
/// Thread: engine.  Limits: kLanguagesMax, the least used out; a file of kFileBytesMax.
class Taste {
 public:
  static constexpr std::size_t kLanguagesMax = 64;
  static constexpr std::size_t kFileBytesMax = std::size_t{16} * 1024;
  static constexpr double kShiftMax = 1.5;

  /// A suggestion that was given `chance` ended so.
  void note(std::string_view language, Verdict verdict, double chance);
  /// `chance` as it is for this user.
  double adapted(std::string_view language, double chance) const;
  /// What kAuto stands for; kMedium until kShownMin suggestions were shown.
  Eagerness eagerness(std::string_view language, Eagerness wanted) const;

  void clear();
  /// True once after each change that is not saved yet.
  bool take_changed();

  const std::map<std::string, TasteRow, std::less<>>& rows() const { return rows_; }
  std::string to_text() const;
  /// kBadInput for what is no such text; nothing changes then.
  Result<void> read(std::string_view text);

 private:
  std::map<std::string, TasteRow, std::less<>> rows_;
  bool changed_ = false;
};

}  // namespace efimd::completion
