#include "daemon/cli/commands/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/cli/commands/table.h"
#include "daemon/config/printable.h"
#include "lsp/uri.h"

namespace efimd::service {

using Json = nlohmann::json;

namespace {

const Json& at(const Json& value, const char* key) {
  static const Json kNull;
  if (!value.is_object()) return kNull;
  const auto found = value.find(key);
  return found == value.end() ? kNull : *found;
}

std::string text(const Json& value) {
  if (value.is_string() && value.get_ref<const std::string&>().empty()) return "-";
  if (value.is_string()) return printable(value.get_ref<const std::string&>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_number_integer() ? value.dump() : "-";
}

double number(const Json& value) { return value.is_number() ? value.get<double>() : 0.0; }

/// `value` as `show` writes numbers, or "-".
template <class Show>
std::string shown(const Json& value, Show show) {
  return value.is_number() ? show(value.get<double>()) : "-";
}

std::string one_decimal(double value) { return fmt::format("{:.1f}", value); }

std::string state_text(const Json& state) {
  const std::string name = text(at(state, "name"));
  if (name == "loading")
    return fmt::format("loading, {:.0f} %", 100 * number(at(state, "progress")));
  if (name == "failed") return fmt::format("failed: {}", text(at(state, "message")));
  return name;
}

std::string model_text(const Json& model) {
  if (at(model, "name").is_null()) return text(at(model, "path"));
  return fmt::format("{} ({}, {} parameters, {}, {} FIM, window {} tokens)",
                     text(at(model, "name")), text(at(model, "architecture")),
                     shown(at(model, "parameters"), count_text), text(at(model, "fileType")),
                     text(at(model, "fimOrder")), text(at(model, "windowTokens")));
}

/// "q8 (next token as ...)"
std::string kv_text(const Json& kv) {
  const std::string reason = text(at(kv, "reason"));
  return reason == "-" ? text(at(kv, "type"))
                       : fmt::format("{} ({})", text(at(kv, "type")), reason);
}

/// "https://… (model, asked in tokens), answered 12 times": the engine elsewhere.
std::string elsewhere_text(const Json& elsewhere) {
  if (elsewhere.is_null()) return "none; nothing leaves this machine";
  const std::string trouble = text(at(elsewhere, "trouble"));
  const bool fine = trouble.empty() || trouble == "-";
  return fmt::format("{} ({}, asked in {}), answered {} times{}", text(at(elsewhere, "url")),
                     text(at(elsewhere, "model")), text(at(elsewhere, "promptsAre")),
                     text(at(elsewhere, "answerCount")),
                     fine ? "" : "; now it does not: " + trouble);
}

std::string overview(const Json& status) {
  const Json& model = at(status, "model");
  const Json& device = at(status, "device");
  const std::string device_text =
      at(device, "kind").is_null()
          ? "none yet; it is opened with the model"
          : fmt::format("{}, {} ({})", text(at(device, "kind")), text(at(device, "name")),
                        text(at(device, "reason")));
  return listing(
      {{"efimd", fmt::format("{}, process {}, up {}", text(at(status, "version")),
                             text(at(status, "pid")), shown(at(status, "uptimeS"), duration_text))},
       {"state", state_text(at(status, "state"))},
       {"model", model_text(model)},
       {"file", fmt::format("{} ({})", text(at(model, "path")), text(at(model, "reason")))},
       {"device", device_text},
       {"weights", text(at(device, "weights"))},
       {"elsewhere", elsewhere_text(at(status, "elsewhere"))},
       {"http", text(at(at(status, "http"), "text"))},
       {"KV", kv_text(at(model, "kv"))}});
}

std::string memory_table(const Json& memory) {
  std::vector<std::vector<std::string>> rows;
  for (const char* tier : {"device", "host", "disk"}) {
    const Json& bytes = at(memory, tier);
    if (!at(bytes, "isDevice").is_null()) continue;
    const bool is_host = !at(at(memory, "host"), "isDevice").is_null();
    rows.push_back({is_host && rows.empty() ? "device, which is the host" : tier,
                    shown(at(bytes, "usedBytes"), bytes_text),
                    shown(at(bytes, "budgetBytes"), bytes_text)});
  }
  return table({{"KV in", Align::kLeft}, {"used"}, {"budget"}}, rows);
}

std::string files_table(const Json& files, std::size_t name_width_max) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& file : files)
    rows.push_back({tail_of(lsp::display(text(at(file, "uri"))), name_width_max),
                    text(at(file, "open")), text(at(file, "anchors")),
                    text(at(file, "tokensDevice")), text(at(file, "tokensHost")),
                    text(at(file, "tokensDisk")), text(at(file, "hits")), text(at(file, "misses")),
                    shown(at(file, "lastUseS"), duration_text)});
  return table({{"file", Align::kLeft},
                {"open"},
                {"anchors"},
                {"device"},
                {"host"},
                {"disk"},
                {"hits"},
                {"misses"},
                {"last use"}},
               rows);
}

std::string events_table(const Json& events) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, event] : events.items())
    rows.push_back({name, text(at(event, "count")), shown(at(event, "evaluatedMean"), one_decimal),
                    shown(at(event, "reusedMean"), one_decimal),
                    shown(at(event, "firstTokenMsP50"), one_decimal),
                    shown(at(event, "firstTokenMsP95"), one_decimal)});
  return table(
      {{"event", Align::kLeft}, {"count"}, {"evaluated"}, {"reused"}, {"first ms p50"}, {"p95"}},
      rows);
}

std::string silence_table(const Json& silence) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& reason : silence)
    rows.push_back({text(at(reason, "reason")), text(at(reason, "count"))});
  return table({{"no suggestion because", Align::kLeft}, {"count"}}, rows);
}

std::string sources_table(const Json& sources) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& source : sources)
    rows.push_back(
        {text(at(source, "source")), text(at(source, "shown")), text(at(source, "accepted"))});
  return table({{"suggestions from", Align::kLeft}, {"shown"}, {"accepted"}}, rows);
}

/// What the user takes and rejects, by language; empty if nothing was noted.
std::string taste_text(const Json& taste) {
  std::string out;
  if (const std::string trouble = text(at(taste, "trouble")); !trouble.empty() && trouble != "-")
    out = "what you take and reject: " + trouble + "\n";
  const Json& languages = at(taste, "languages");
  if (!languages.is_array() || languages.empty()) return out;
  const auto count = [](const Json& row, const char* name) {
    const Json& value = at(row, name);
    return fmt::format("{:.0f}", value.is_number() ? value.get<double>() : 0.0);
  };
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : languages)
    rows.push_back({text(at(row, "language")), count(row, "accepted"), count(row, "typedThrough"),
                    count(row, "ignored"), count(row, "rejected")});
  return out + table({{"suggestions in", Align::kLeft},
                      {"accepted"},
                      {"typed through"},
                      {"ignored"},
                      {"rejected"}},
                     rows);
}

/// The user's own text that may be suggested.
std::string recall_text(const Json& recall) {
  if (!at(recall, "files").is_number()) return {};
  std::string line = fmt::format(
      "recall: {} documents, {} files of {} projects; {} of text in {}\n",
      text(at(recall, "documents")), text(at(recall, "files")), text(at(recall, "projects")),
      shown(at(recall, "textBytes"), bytes_text), shown(at(recall, "bytes"), bytes_text));
  for (const Json& folder : at(recall, "folders")) {
    if (at(folder, "stalled") == true)
      line += fmt::format("recall: {} is on a disk that does not answer\n",
                          text(at(folder, "project")));
    else if (at(folder, "reading") == true)
      line += fmt::format("recall reads {}\n", text(at(folder, "project")));
    if (const std::string limit = text(at(folder, "leftOut")); limit != "-")
      line += fmt::format("recall: {} was read only in part, because it is too large ({})\n",
                          text(at(folder, "project")), limit);
  }
  if (number(at(recall, "filesDropped")) > 0)
    line +=
        fmt::format("recall: {} files did not fit its budget\n", text(at(recall, "filesDropped")));
  return line;
}

/// How much of all prompts was in KV.
std::string reuse_text(const Json& reuse) {
  if (!at(reuse, "hitRate").is_number()) return {};
  return fmt::format("of all prompts {:.1f} % was in KV: {} tokens reused, {} evaluated\n",
                     100 * number(at(reuse, "hitRate")), text(at(reuse, "reusedTokens")),
                     text(at(reuse, "evaluatedTokens")));
}

/// The gain of KV on disk; empty if none is kept.
std::string store_text(const Json& store) {
  constexpr std::string_view kNothing = "nothing is kept on disk";
  if (!store.is_object()) return fmt::format("{}\n", kNothing);
  const std::string trouble = text(at(store, "trouble"));
  if (at(store, "usable") != true)
    return trouble.starts_with(kNothing) ? trouble + "\n"
                                         : fmt::format("{}: {}\n", kNothing, trouble);
  std::string line = fmt::format(
      "restored from disk: {} tokens, {} s of evaluating saved; loading {}/s, writing {}/s\n",
      text(at(store, "restoredTokens")), shown(at(store, "savedS"), one_decimal),
      shown(at(store, "loadBytesPerS"), bytes_text),
      shown(at(store, "writeBytesPerS"), bytes_text));
  if (trouble != "-") line += "KV on disk: " + trouble + "\n";
  return line;
}

std::string sessions_table(const Json& sessions) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& session : sessions)
    if (!text(at(session, "client")).starts_with('-') || number(at(session, "documents")) > 0)
      rows.push_back({text(at(session, "client")), text(at(session, "documents")),
                      text(at(session, "requests")), text(at(session, "shown")),
                      text(at(session, "accepted")), text(at(session, "acceptedPartly"))});
  if (rows.empty()) return "no editor is connected\n";
  return table(
      {{"editor", Align::kLeft}, {"documents"}, {"requests"}, {"shown"}, {"accepted"}, {"in part"}},
      rows);
}

/// "device [######....]   12.0 MiB of 1.0 GiB" for each tier that this daemon has.
std::string memory_bars(const Json& memory) {
  constexpr std::size_t kBarCells = 30;
  std::vector<std::pair<std::string, std::string>> lines;
  for (const char* tier : {"device", "host", "disk"}) {
    const double used = number(at(at(memory, tier), "usedBytes"));
    const double budget = number(at(at(memory, tier), "budgetBytes"));
    if (budget <= 0) continue;
    const double share = std::clamp(used / budget, 0.0, 1.0);
    const auto full = static_cast<std::size_t>(std::ceil(share * kBarCells));
    lines.emplace_back(tier, fmt::format("[{}{}] {} of {}", std::string(full, '#'),
                                         std::string(kBarCells - full, '.'), bytes_text(used),
                                         bytes_text(budget)));
  }
  return listing(lines);
}

/// The lines of `shown` that `screen` has room for.
std::vector<std::string> screen_of(const std::string& shown, Screen screen) {
  std::vector<std::string> lines;
  std::istringstream text(shown);
  for (std::string line; std::getline(text, line);) lines.push_back(cropped(line, screen.columns));
  if (lines.size() > screen.rows) {
    const std::size_t left_out = lines.size() - screen.rows + 1;
    lines.resize(screen.rows - 1);
    lines.push_back(cropped(fmt::format("... {} more lines", left_out), screen.columns));
  }
  return lines;
}

}  // namespace

std::string status_text(const Json& status) {
  std::vector<std::string> parts = {overview(status), memory_table(at(status, "memory")),
                                    reuse_text(at(status, "reuse")) +
                                        store_text(at(status, "store")) +
                                        recall_text(at(status, "recall")),
                                    sessions_table(at(status, "sessions"))};
  if (const Json& files = at(status, "files"); files.is_array() && !files.empty())
    parts.push_back(files_table(files, std::string::npos));
  if (const Json& events = at(status, "events"); events.is_object() && !events.empty())
    parts.push_back(events_table(events));
  if (const Json& silence = at(status, "silence"); silence.is_array() && !silence.empty())
    parts.push_back(silence_table(silence));
  if (const Json& sources = at(status, "sources"); sources.is_array() && !sources.empty())
    parts.push_back(sources_table(sources));
  if (std::string taste = taste_text(at(status, "taste")); !taste.empty())
    parts.push_back(std::move(taste));
  const Json& config = at(status, "config");
  for (const Json& warning : at(config, "warnings"))
    parts.push_back(fmt::format("warning: {}:{}: {}\n", text(at(config, "file")),
                                text(at(warning, "line")), text(at(warning, "message"))));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

std::string plans_text(const Json& status) {
  const Json& plans = at(status, "plans");
  if (!plans.is_array() || plans.empty()) return "no request was planned yet\n";
  std::string out;
  for (const Json& plan : plans) {
    out += fmt::format("{}  {}\n    {}\n", text(at(plan, "event")), text(at(plan, "uri")),
                       text(at(plan, "taken")));
    for (const Json& file : at(plan, "head")) out += fmt::format("    shows {}\n", text(file));
    for (const Json& other : at(plan, "considered"))
      out += fmt::format("    not {}\n", text(other));
  }
  return out;
}

std::vector<std::string> status_screen(const Json& status, Screen screen) {
  constexpr std::size_t kFileColumns = 60;  // what the table of files needs beside the name
  constexpr std::size_t kNameMin = 12;
  std::vector<std::string> parts = {overview(status), memory_bars(at(status, "memory"))};
  if (const Json& events = at(status, "events"); events.is_object() && !events.empty())
    parts.push_back(events_table(events));
  if (const Json& files = at(status, "files"); files.is_array() && !files.empty())
    parts.push_back(
        files_table(files, std::max(screen.columns, kFileColumns + kNameMin) - kFileColumns));
  if (const Json& silence = at(status, "silence"); silence.is_array() && !silence.empty())
    parts.push_back(silence_table(silence));
  if (const Json& sources = at(status, "sources"); sources.is_array() && !sources.empty())
    parts.push_back(sources_table(sources));
  parts.push_back(sessions_table(at(status, "sessions")));
  return screen_of(fmt::format("{}", fmt::join(parts, "\n")), screen);
}

std::vector<std::string> plans_screen(const Json& status, Screen screen) {
  return screen_of(plans_text(status), screen);
}

}  // namespace efimd::service
