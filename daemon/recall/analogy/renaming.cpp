#include "daemon/recall/analogy/renaming.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "daemon/recall/anchors.h"

namespace efimd::recall {

namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char kCase = 'a' - 'A';
char lower(char c) { return is_upper(c) ? static_cast<char>(c + kCase) : c; }
char upper(char c) { return is_lower(c) ? static_cast<char>(c - kCase) : c; }
bool is_small(char c) { return c != '_' && !is_upper(c) && !is_digit(c); }

/// A part of a name; what stands between parts belongs to none.
struct Part {
  std::size_t begin, end;
};

std::size_t part_end(std::string_view name, std::size_t begin) {
  const auto run = [&](std::size_t at, bool (*holds)(char)) {
    while (at < name.size() && holds(name[at])) ++at;
    return at;
  };
  if (is_digit(name[begin])) return run(begin, is_digit);
  if (!is_upper(name[begin])) return run(begin, is_small);
  const std::size_t capitals = run(begin, is_upper);
  if (capitals == begin + 1) return run(capitals, is_small);
  // The last capital begins the next part: "HTTPHead".
  return capitals < name.size() && is_small(name[capitals]) ? capitals - 1 : capitals;
}

/// "parseHTTPHead_2" has the parts "parse", "HTTP", "Head" and "2".
std::vector<Part> parts_of(std::string_view name) {
  std::vector<Part> parts;
  for (std::size_t at = 0; at < name.size();) {
    if (name[at] == '_') {
      ++at;
      continue;
    }
    parts.push_back({at, part_end(name, at)});
    at = parts.back().end;
  }
  return parts;
}

std::vector<std::string> lowered(std::string_view name, const std::vector<Part>& parts) {
  std::vector<std::string> all;
  for (const Part& part : parts) {
    all.emplace_back(name.substr(part.begin, part.end - part.begin));
    for (char& c : all.back()) c = lower(c);
  }
  return all;
}

bool has_inner_line(std::string_view name, const std::vector<Part>& parts) {
  return !parts.empty() &&
         name.substr(parts.front().begin, parts.back().end - parts.front().begin).find('_') !=
             std::string_view::npos;
}

bool is_camel(std::string_view name, const std::vector<Part>& parts) {
  return std::ranges::any_of(name, is_upper) && !has_inner_line(name, parts);
}

/// What two lists differ in, between their equal beginnings and ends.
void keep_difference(std::vector<std::string>& a, std::vector<std::string>& b) {
  const auto most = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  const auto front = std::mismatch(a.begin(), a.begin() + most, b.begin()).first - a.begin();
  const auto back =
      std::mismatch(a.rbegin(), a.rbegin() + (most - front), b.rbegin()).first - a.rbegin();
  // A part that one of them lacks has no place in another name: "width" and "max_width".
  if (a.size() == static_cast<std::size_t>(front + back) ||
      b.size() == static_cast<std::size_t>(front + back))
    return;
  const auto shorten = [&](std::vector<std::string>& list) {
    list.erase(list.end() - back, list.end());
    list.erase(list.begin(), list.begin() + front);
  };
  shorten(a);
  shorten(b);
}

}  // namespace

bool Renaming::add(std::string_view theirs, std::string_view ours) {
  const std::vector<Part> their_parts = parts_of(theirs), our_parts = parts_of(ours);
  Rule rule{lowered(theirs, their_parts), lowered(ours, our_parts), is_camel(ours, our_parts)};
  if (rule.from.empty() || rule.to.empty()) return false;
  if (rule.from == rule.to) return true;
  keep_difference(rule.from, rule.to);
  const auto known = std::ranges::find(rules_, rule.from, &Rule::from);
  if (known != rules_.end()) return known->to == rule.to;
  rules_.push_back(std::move(rule));
  return true;
}

/// The rule for most parts from `at` on; nullptr: none.
const Renaming::Rule* Renaming::rule_at(const std::vector<std::string>& parts,
                                        std::size_t at) const {
  const Rule* best = nullptr;
  for (const Rule& rule : rules_)
    if (rule.from.size() <= parts.size() - at &&
        std::equal(rule.from.begin(), rule.from.end(),
                   parts.begin() + static_cast<std::ptrdiff_t>(at)) &&
        (best == nullptr || rule.from.size() > best->from.size()))
      best = &rule;
  return best;
}

std::optional<std::string> Renaming::word(std::string_view theirs) const {
  const std::vector<Part> parts = parts_of(theirs);
  const std::vector<std::string> low = lowered(theirs, parts);
  const bool line = has_inner_line(theirs, parts);
  const bool camel = is_camel(theirs, parts);
  std::string out;
  std::size_t done = 0;
  for (std::size_t i = 0; i < parts.size();) {
    const Rule* const rule = rule_at(low, i);
    if (rule == nullptr) {
      ++i;
      continue;
    }
    const auto [begin, end] = parts[i];
    out += theirs.substr(done, begin - done);
    const bool capitals =
        end - begin > 1 && std::all_of(theirs.begin() + static_cast<std::ptrdiff_t>(begin),
                                       theirs.begin() + static_cast<std::ptrdiff_t>(end), is_upper);
    const bool joins_by_line = capitals || line || !(camel || rule->camel);
    for (std::size_t k = 0; k < rule->to.size(); ++k) {
      std::string part = rule->to[k];
      if (capitals) std::ranges::transform(part, part.begin(), upper);
      if (k == 0 ? is_upper(theirs[begin]) : !joins_by_line) part[0] = upper(part[0]);
      if (k > 0 && joins_by_line) out += '_';
      out += part;
    }
    i += rule->from.size();
    done = parts[i - 1].end;
  }
  if (done == 0) return std::nullopt;
  return out.append(theirs.substr(done));
}

std::optional<std::string> Renaming::text(std::string_view theirs) const {
  std::string out;
  bool renamed = false;
  for (std::size_t at = 0; at < theirs.size();) {
    std::size_t end = at;
    while (end < theirs.size() && is_word(theirs[end])) ++end;
    const std::string_view name = theirs.substr(at, end - at);
    if (const auto new_name = name.empty() ? std::nullopt : word(name)) {
      out += *new_name;
      renamed = true;
    } else {
      out += name;
    }
    for (at = end; at < theirs.size() && !is_word(theirs[at]); ++at) out += theirs[at];
  }
  if (!renamed) return std::nullopt;
  return out;
}

}  // namespace efimd::recall
