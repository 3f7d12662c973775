#include "daemon/context/head.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

namespace efimd::context {

namespace {

/// Shorter names than this are mentioned by chance; so are members' short ones.
constexpr std::size_t kNameBytesMin = 2;
constexpr std::size_t kMemberBytesMin = 8;

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

using Words = std::unordered_set<std::string_view>;

Words words_of(std::string_view text) {
  Words words;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end - begin >= kNameBytesMin) words.insert(text.substr(begin, end - begin));
    begin = std::max(end, begin + 1);
  }
  return words;
}

bool is_mentioned(const std::vector<std::string>& names, const Words& words) {
  for (std::size_t at = 0; at < names.size(); ++at)
    if ((at == 0 || names[at].size() >= kMemberBytesMin) && words.contains(names[at])) return true;
  return false;
}

/// One file's declarations on their way into a slot.
struct Choice {
  const Source* source = nullptr;
  std::set<std::size_t> taken;  ///< by index, in the file's order
  std::size_t bytes = 0;
};

class Chooser {
 public:
  Chooser(std::string_view text, std::span<const Source> sources, std::size_t bytes_max)
      : words_(words_of(text)), left_(bytes_max), bytes_max_(bytes_max) {
    for (const Source& source : sources) choices_.push_back({&source, {}});
  }

  Head choose() {
    // Twice each: no file takes more than half before the others had their turn.
    for (const std::size_t of_file_max : {bytes_max_ / 2, bytes_max_})
      for (Choice& choice : choices_)
        take(choice, of_file_max, [&](const auto& d) {
          return is_mentioned(d.names, words_) && is_visible(choice.source->file, d);
        });
    for (const std::size_t of_file_max : {bytes_max_ / 2, bytes_max_})
      for (Choice& choice : choices_)
        if (!choice.taken.empty() && !choice.source->file.is_beside)
          take(choice, of_file_max, [&](const auto& d) {
            return is_wanted(choice.source->file.names, d.names) &&
                   is_visible(choice.source->file, d);
          });
    Head head;
    for (const Choice& choice : choices_)
      if (!choice.taken.empty()) head.slots.push_back(slot_of(choice));
    return head;
  }

 private:
  template <class Wanted>
  void take(Choice& choice, std::size_t of_file_max, const Wanted& wanted) {
    const std::vector<syntax::Declaration>& declarations = *choice.source->declarations;
    for (std::size_t at = 0; at < declarations.size(); ++at) {
      const std::size_t bytes = declarations[at].text.size() + 1;
      if (bytes > left_ || choice.bytes + bytes > of_file_max) continue;
      if (choice.taken.contains(at) || !wanted(declarations[at])) continue;
      choice.taken.insert(at);
      choice.bytes += bytes;
      left_ -= bytes;
    }
  }

  /// Whether the import brings it in: `from a import B` shows no more of a than B.
  static bool is_wanted(const std::vector<std::string>& imported,
                        const std::vector<std::string>& names) {
    return imported.empty() || std::ranges::find(imported, names.front()) != imported.end();
  }

  /// Go shows other packages only names with a capital letter.
  static bool is_visible(const UsedFile& file, const syntax::Declaration& declaration) {
    if (file.is_beside || !file.path.ends_with(".go")) return true;
    const auto is_shown = [](std::string_view name) {
      return name.empty() || (name.front() != '_' && (name.front() < 'a' || name.front() > 'z'));
    };
    const std::string_view text = declaration.text;
    const bool is_group =
        text.starts_with("const") || text.starts_with("var") || text.starts_with("type (");
    return is_group ? std::ranges::any_of(declaration.names, is_shown)
                    : is_shown(declaration.names.front());
  }

  static Slot slot_of(const Choice& choice) {
    Slot slot{choice.source->file.path, {}, {}, choice.source->file.why};
    for (const std::size_t at : choice.taken) {
      const syntax::Declaration& declaration = (*choice.source->declarations)[at];
      slot.text += declaration.text + "\n";
      slot.names.insert(slot.names.end(), declaration.names.begin(), declaration.names.end());
    }
    return slot;
  }

  const Words words_;
  std::size_t left_;
  const std::size_t bytes_max_;
  std::vector<Choice> choices_;
};

void add_lines(std::string_view text, std::unordered_set<std::string_view>& lines) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.insert(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Whether the file of the slot still declares all that it says.
bool is_so(const Slot& slot, std::span<const Source> sources) {
  const auto source = std::ranges::find(
      sources, slot.path, [](const Source& each) { return std::string_view(each.file.path); });
  if (source == sources.end()) return false;
  std::unordered_set<std::string_view> said, declared;
  add_lines(slot.text, said);
  for (const syntax::Declaration& each : *source->declarations) add_lines(each.text, declared);
  return std::ranges::all_of(said, [&](std::string_view line) { return declared.contains(line); });
}

}  // namespace

FileParts parts_of(std::string_view path, std::string_view text) {
  const syntax::Grammar grammar = syntax::grammar_of(path);
  return {syntax::outline_of(grammar, text), syntax::imports_of(grammar, text)};
}

std::vector<UsedFile> passed_on(const UsedFile& file, const FileParts& parts,
                                const ProjectPaths& project) {
  std::vector<std::string> missing = file.names;
  for (const syntax::Declaration& declaration : parts.declarations)
    std::erase_if(missing, [&](const std::string& name) {
      return std::ranges::find(declaration.names, name) != declaration.names.end();
    });
  const bool all = file.names.empty() && parts.declarations.empty();
  if ((missing.empty() && !all) || file.is_beside) return {};
  // Rust's "mod a;" passes on no names of a.
  std::vector<syntax::Import> imports = parts.imports;
  std::erase_if(imports,
                [](const auto& each) { return each.kind == syntax::Import::Kind::kChild; });
  // Who imports from this file knows them by the names that it gives them.
  std::map<std::string, std::string> named_there;
  for (syntax::Import& import : imports)
    for (const auto& [name, as] : import.renamed) {
      import.names.push_back(as);
      // A default most often has the name that is given to it.
      if (name != "default") named_there.emplace(as, name);
    }
  std::vector<UsedFile> named, others;
  for (UsedFile& used : used_files(imports, file.path, syntax::grammar_of(file.path), project)) {
    if (used.is_beside) continue;
    used.why = "passed on by " + std::string(name_of(file.path));
    if (all || used.names.empty()) {
      others.push_back(std::move(used));
      continue;
    }
    std::erase_if(used.names, [&](const std::string& name) {
      return std::ranges::find(missing, name) == missing.end();
    });
    if (!used.names.empty()) named.push_back(std::move(used));
  }
  for (const UsedFile& used : named)
    for (const std::string& name : used.names) std::erase(missing, name);
  for (UsedFile& used : named)
    for (std::string& name : used.names)
      if (const auto there = named_there.find(name); there != named_there.end())
        name = there->second;
  if (missing.empty() && !all) return named;
  for (UsedFile& used : others) {
    if (!all) used.names = missing;
    named.push_back(std::move(used));
  }
  return named;
}

std::vector<ReadFile> read_used(std::string_view text, const std::string& own,
                                const ProjectPaths& project,
                                const std::function<FilePartsPtr(const std::string& path)>& read) {
  const syntax::Grammar grammar = syntax::grammar_of(own);
  std::vector<ReadFile> files;
  const auto add = [&](UsedFile file) {
    const auto same = [&](const ReadFile& each) { return each.file.path == file.path; };
    if (files.size() < kUsedFilesMax && file.path != own && std::ranges::none_of(files, same))
      files.push_back({std::move(file), nullptr});
  };
  for (UsedFile& file : used_files(syntax::imports_of(grammar, text), own, grammar, project))
    add(std::move(file));
  for (std::size_t at = 0; at < files.size(); ++at) {
    files[at].parts = read(files[at].file.path);
    if (!files[at].parts) continue;
    for (UsedFile& more : passed_on(files[at].file, *files[at].parts, project))
      add(std::move(more));
  }
  return files;
}

Head make_head(std::string_view text, std::span<const Source> sources, std::size_t bytes_max) {
  return Chooser(text, sources, bytes_max).choose();
}

bool is_worth_changing(const Head& old, const Head& now, std::span<const Source> sources,
                       std::string_view text) {
  if (old == now) return false;
  if (!std::ranges::all_of(old.slots, [&](const Slot& slot) { return is_so(slot, sources); }))
    return true;
  const Words words = words_of(text);
  for (const Slot& slot : now.slots) {
    const auto same = std::ranges::find(old.slots, slot.path, &Slot::path);
    for (const std::string& name : slot.names) {
      if (!words.contains(name)) continue;
      if (same == old.slots.end() || std::ranges::find(same->names, name) == same->names.end())
        return true;
    }
  }
  return false;
}

}  // namespace efimd::context
