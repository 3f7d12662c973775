#include "daemon/completion/pace_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/small_file.h"
#include "engine/engine.h"

namespace efimd::completion {

namespace {

constexpr std::string_view kPaceFirstLine = "efimd pace 1";
constexpr std::size_t kPaceLineBytesMax = 64;
constexpr std::size_t kPaceBytesMax = (PaceKeeper::kKeptMax + 1) * kPaceLineBytesMax;

using Rows = std::vector<std::pair<std::string, Pace>>;  // in the order in which they were kept

/// A line is "KEY FIRST NEAR". What follows a line that is none is passed over.
Rows read(const std::filesystem::path& file) {
  std::istringstream lines(read_small_file(file, kPaceBytesMax));
  Rows rows;
  std::string line;
  if (!std::getline(lines, line) || line != kPaceFirstLine) return rows;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::pair<std::string, Pace> row;
    if (!(words >> row.first >> row.second.first >> row.second.near)) break;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string key_of(const engine::Engine& engine) {
  const std::string device = engine.device_kind() + " " + engine.device_name();
  return digest_of(std::as_bytes(std::span(device)), engine.model()).hex();
}

}  // namespace

std::optional<Pace> PaceKeeper::find(const engine::Engine& engine) const {
  const Rows rows = read(file_);
  const auto found = std::ranges::find(rows, key_of(engine), &Rows::value_type::first);
  return found == rows.end() ? std::nullopt : std::optional(found->second);
}

void PaceKeeper::keep(const engine::Engine& engine, const Pace& pace) const {
  const std::string key = key_of(engine);
  Rows rows = read(file_);
  std::erase_if(rows, [&](const auto& row) { return row.first == key; });
  rows.emplace_back(key, pace);
  if (rows.size() > kKeptMax) rows.erase(rows.begin(), rows.end() - kKeptMax);
  std::string text(kPaceFirstLine);
  for (const auto& [of, kept] : rows) text += fmt::format("\n{} {} {}", of, kept.first, kept.near);
  static_cast<void>(replace_small_file(file_, text + "\n"));
}

}  // namespace efimd::completion
