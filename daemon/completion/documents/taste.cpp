#include "daemon/completion/documents/taste.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "daemon/recall/chance.h"

namespace efimd::completion {

namespace {

/// Suggestions that a row remembers: beyond it the older half is forgotten.
constexpr double kRemembered = 400;
/// Fewer say nothing of what the user wants.
constexpr double kShownMin = 40;
/// Of shown suggestions: more rejected ones than this make it quieter, more taken ones bolder.
constexpr double kRejectedMuch = 0.5, kTakenMuch = 0.6;
/// How far one suggestion moves the shift.
constexpr double kRate = 0.05;
/// An ignored suggestion may have been right.
constexpr double kIgnoredWeight = 0.3;
constexpr std::size_t kNameBytesMax = 32;
constexpr std::string_view kTasteFirstLine = "efimd taste 1\n";

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7F; });
}

/// The next word of the line, which loses it.
std::string_view next_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<double> number(std::string_view word, double least, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  if (!(value >= least && value <= most)) return std::nullopt;
  return value;
}

std::optional<std::pair<std::string, TasteRow>> row_in(std::string_view line) {
  const std::string_view name = next_word(line);
  if (!is_name(name)) return std::nullopt;
  TasteRow row;
  for (double* count : {&row.accepted, &row.typed_through, &row.ignored, &row.rejected}) {
    const auto value = number(next_word(line), 0, 2 * kRemembered);
    if (!value) return std::nullopt;
    *count = *value;
  }
  const auto shift = number(next_word(line), -Taste::kShiftMax, Taste::kShiftMax);
  if (!shift || !line.empty()) return std::nullopt;
  row.shift = *shift;
  return std::pair(std::string(name), row);
}

}  // namespace

void Taste::note(std::string_view language, Verdict verdict, double chance) {
  if (!is_name(language)) return;
  if (!rows_.contains(language) && rows_.size() >= kLanguagesMax)
    rows_.erase(
        std::ranges::min_element(rows_, {}, [](const auto& row) { return row.second.shown(); }));
  TasteRow& row = rows_[std::string(language)];
  double taken = 0, weight = 1;
  switch (verdict) {
    case Verdict::kAccepted:
      ++row.accepted;
      taken = 1;
      break;
    case Verdict::kTypedThrough:
      ++row.typed_through;
      taken = 1;
      break;
    case Verdict::kIgnored:
      ++row.ignored;
      weight = kIgnoredWeight;
      break;
    case Verdict::kRejected:
      ++row.rejected;
      break;
  }
  const double said = recall::chance_of_odds(recall::log_odds(chance) + row.shift);
  row.shift = std::clamp(row.shift + kRate * weight * (taken - said), -kShiftMax, kShiftMax);
  if (row.shown() > kRemembered)
    for (double* count : {&row.accepted, &row.typed_through, &row.ignored, &row.rejected})
      *count /= 2;
  changed_ = true;
}

double Taste::adapted(std::string_view language, double chance) const {
  const auto row = rows_.find(language);
  if (row == rows_.end() || row->second.shown() < kShownMin) return chance;
  return recall::chance_of_odds(recall::log_odds(chance) + row->second.shift);
}

Eagerness Taste::eagerness(std::string_view language, Eagerness wanted) const {
  if (wanted != Eagerness::kAuto) return wanted;
  const auto found = rows_.find(language);
  if (found == rows_.end() || found->second.shown() < kShownMin) return Eagerness::kMedium;
  const TasteRow& row = found->second;
  if (row.rejected > kRejectedMuch * row.shown()) return Eagerness::kLow;
  if (row.accepted + row.typed_through > kTakenMuch * row.shown()) return Eagerness::kHigh;
  return Eagerness::kMedium;
}

void Taste::clear() {
  rows_.clear();
  changed_ = true;
}

bool Taste::take_changed() { return std::exchange(changed_, false); }

std::string Taste::to_text() const {
  std::string text(kTasteFirstLine);
  for (const auto& [language, row] : rows_)
    text += fmt::format("{} {:.3f} {:.3f} {:.3f} {:.3f} {:.4f}\n", language, row.accepted,
                        row.typed_through, row.ignored, row.rejected, row.shift);
  return text;
}

Result<void> Taste::read(std::string_view text) {
  const auto damaged = [](std::string what) {
    return fail(Fault::kBadInput, std::move(what), "it is written anew; nothing else is lost");
  };
  if (text.size() > kFileBytesMax || !text.starts_with(kTasteFirstLine))
    return damaged("it is not a file of this version");
  text.remove_prefix(kTasteFirstLine.size());
  std::map<std::string, TasteRow, std::less<>> rows;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto row = end == std::string_view::npos ? std::nullopt : row_in(text.substr(0, end));
    if (!row || rows.size() >= kLanguagesMax) return damaged("a line of it is damaged");
    rows.insert(*row);
    text.remove_prefix(end + 1);
  }
  rows_ = std::move(rows);
  changed_ = false;
  return {};
}

}  // namespace efimd::completion
