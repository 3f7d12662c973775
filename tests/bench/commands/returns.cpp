#include "tests/bench/completion/returns.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/cli/commands/source_place.h"
#include "daemon/cli/commands/table.h"
#include "lsp/json_rpc.h"
#include "tests/bench/commands/commands.h"
#include "tests/bench/completion/samples.h"

namespace efimd::bench {

using lsp::Json;

namespace {

struct ReturnsRow {
  std::string trace;
  Tier tier = Tier::kMemory;
  int capacity_tokens = 0;
  std::array<Returned, 3> of = {};  ///< by KeepOrder
};

constexpr std::array kOrders = {KeepOrder::kOldest, KeepOrder::kReturns, KeepOrder::kBest};
constexpr std::array kOrderNames = {"oldest", "returns", "best"};

const char* name_of(Tier tier) { return tier == Tier::kMemory ? "memory" : "disk"; }

Json json_of(const ReturnsRow& row) {
  Json json = {{"trace", row.trace},
               {"tier", name_of(row.tier)},
               {"capacityTokens", row.capacity_tokens},
               {"returnCount", row.of[0].returns},
               {"tokens", row.of[0].tokens}};
  for (std::size_t order = 0; order < kOrders.size(); ++order)
    json[kOrderNames[order]] = {{"whole", row.of[order].whole}, {"anew", row.of[order].anew}};
  return json;
}

std::string text_of(const std::vector<ReturnsRow>& rows) {
  std::vector<service::Column> columns = {
      {"trace", service::Align::kLeft}, {"tier", service::Align::kLeft}, {"room for"}, {"returns"}};
  for (const char* what : {"whole", "anew"})
    for (const char* order : kOrderNames) columns.push_back({fmt::format("{}: {}", what, order)});
  std::vector<std::vector<std::string>> lines;
  for (const ReturnsRow& row : rows) {
    std::vector<std::string> line = {row.trace, name_of(row.tier),
                                     fmt::format("{}k", row.capacity_tokens >> 10),
                                     std::to_string(row.of[0].returns)};
    for (const Returned& each : row.of)
      line.push_back(fmt::format("{:.1f} %", percent_of(each.whole, each.returns)));
    for (const Returned& each : row.of)
      line.push_back(fmt::format("{:.1f} %", percent_of(each.anew, each.tokens)));
    lines.push_back(std::move(line));
  }
  return service::table(columns, lines);
}

}  // namespace

int run_returns(const CommandLine& options) {
  std::vector<ReturnsRow> rows, sums;
  for (const std::filesystem::path& file : options.files) {
    const auto text = service::read_text(file);
    if (!text) return failed(text.error());
    auto visits = parse_visits(*text);
    if (!visits) {
      Error error = visits.error();
      error.what = file.string() + ": " + error.what;
      return failed(error);
    }
    *visits = with_looks(*visits, options.looks);
    std::size_t sum = 0;
    for (const Tier tier : {Tier::kMemory, Tier::kDisk})
      for (const int capacity : options.room_tokens) {
        ReturnsRow row{file.stem().string(), tier, capacity};
        if (sums.size() == sum) sums.push_back({"all", tier, capacity});
        for (std::size_t order = 0; order < kOrders.size(); ++order) {
          row.of[order] =
              replay_visits(*visits, {tier, kOrders[order], capacity, options.window_tokens});
          sums[sum].of[order] += row.of[order];
        }
        ++sum;
        rows.push_back(std::move(row));
      }
  }
  if (options.files.size() > 1) rows.insert(rows.end(), sums.begin(), sums.end());
  if (options.json) {
    Json all = Json::array();
    for (const ReturnsRow& row : rows) all.push_back(json_of(row));
    fmt::print("{}\n", lsp::json_text(all));
  } else {
    fmt::print("{}", text_of(rows));
  }
  return 0;
}

}  // namespace efimd::bench
