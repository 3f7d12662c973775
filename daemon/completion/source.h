#pragma once

#include <string_view>

namespace efimd::completion {

/// The origin of an answer: its name in receipts and in the status, and its meaning for
/// docs/protocol.md ("the answer is ...").
struct Source {
  std::string_view name;
  std::string_view meaning;
};

namespace source {

inline constexpr Source kEngine{
    "engine",
    "the model's, asked for this request; also if the model was asked and nothing could be shown"};
inline constexpr Source kElsewhere{
    "elsewhere", "the model's on the server that `engine.url` names, asked for this request"};
inline constexpr Source kTypedThrough{
    "typed-through", "the rest of an earlier suggestion: the user typed its beginning"};
inline constexpr Source kPrefetched{
    "prefetched", "a suggestion that idle time prepared as if the shown one were accepted"};
inline constexpr Source kRemembered{"remembered",
                                    "an earlier suggestion for the same text and cursor"};
inline constexpr Source kRecalled{"recalled", "text of the user's own (recall)"};
inline constexpr Source kRecalledAndModel{
    "recalled+model", "text of the user's own that the model would have written, too"};
inline constexpr Source kNone{"none",
                              "empty; the model was not asked, or failed before its first token"};

inline constexpr Source kAll[] = {kEngine,     kElsewhere, kTypedThrough,     kPrefetched,
                                  kRemembered, kRecalled,  kRecalledAndModel, kNone};

}  // namespace source

}  // namespace efimd::completion
