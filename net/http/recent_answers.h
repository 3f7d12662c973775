#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "net/http/documents.h"

namespace efimd::http {

/// What clients were answered last. Some ask at once for what follows an answer, before the user has
/// accepted it: their text has it as if it were the user's.
///
/// Limits: kAnswersMax; of the text before each, kBeforeBytesMax.
class RecentAnswers {
 public:
  static constexpr std::size_t kAnswersMax = 8;
  static constexpr std::size_t kBeforeBytesMax = 1024;

  /// `answer` was suggested at the cursor of `text`.
  void note(const Surroundings& text, std::string_view answer);
  /// Whether `text` is one of those texts with its answer, and the cursor is behind that.
  bool asks_ahead(const Surroundings& text) const;

 private:
  struct Each {
    std::string path;
    std::string before;  ///< its end
    std::string answer;
  };
  std::deque<Each> answers_;  ///< the newest last
};

}  // namespace efimd::http
