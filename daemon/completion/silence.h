#pragma once

#include <string>
#include <string_view>

namespace efimd::completion {

/// Why there is no suggestion. The status counts under these constants; `detail` follows the reason
/// in the receipt.
struct Silence {
  std::string_view reason;
  std::string detail;
  std::string message() const { return std::string(reason) + detail; }
};

namespace silence {

inline constexpr std::string_view kLoading = "the model is still loading";
inline constexpr std::string_view kNoModel = "no model";
inline constexpr std::string_view kNoMemory = "no memory for the request";
inline constexpr std::string_view kQueueFull = "too many requests at once";
inline constexpr std::string_view kCannotFillIn = "the model cannot fill in text here";
inline constexpr std::string_view kNoRoom = "the prompt does not fit the KV memory";
inline constexpr std::string_view kEngineFailed = "the engine failed";
inline constexpr std::string_view kNoBudget = "no tokens may be generated";
inline constexpr std::string_view kNothing = "the model proposes nothing here";
inline constexpr std::string_view kNothingOnLine = "the model proposes nothing on this line";
inline constexpr std::string_view kOnlyBlanks = "only white space";
inline constexpr std::string_view kRepeats = "it would repeat the text after the cursor";
inline constexpr std::string_view kRepeatsAbove = "it would repeat the line above";
inline constexpr std::string_view kIndented = "it would be indented where no block begins";
inline constexpr std::string_view kUnbalanced = "it would leave brackets or strings unbalanced";
inline constexpr std::string_view kParsesWorse = "the statement would parse worse with it";
inline constexpr std::string_view kUnsure = "the model is not sure";
inline constexpr std::string_view kFinished = "the line is finished";
inline constexpr std::string_view kRejected = "it was just rejected here";
inline constexpr std::string_view kSelectedElse =
    "it cannot go on from the editor's selected completion";
inline constexpr std::string_view kUnreadable = "the model's text is not readable";

}  // namespace silence

}  // namespace efimd::completion
