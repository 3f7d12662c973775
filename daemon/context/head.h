#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/context/resolve.h"
#include "daemon/syntax/imports.h"
#include "daemon/syntax/outline.h"

namespace efimd::context {

/// A part of a head: some of what one file declares.
struct Slot {
  std::string path;                ///< absolute
  std::string text;                ///< whole lines; declarations in the file's order
  std::vector<std::string> names;  ///< what it declares
  std::string why;                 ///< for people
  bool operator==(const Slot&) const = default;
};

/// What a prompt shows of other files, in front of the text's own: a slot for each, in the order
/// of the imports. A value that does not change.
struct Head {
  std::vector<Slot> slots;
  bool operator==(const Head&) const = default;
};
using HeadPtr = std::shared_ptr<const Head>;

/// What a file declares, and what it brings in.
struct FileParts {
  std::vector<syntax::Declaration> declarations;
  std::vector<syntax::Import> imports;
};
FileParts parts_of(std::string_view path, std::string_view text);
using FilePartsPtr = std::shared_ptr<const FileParts>;

/// The files that a used one passes on: those with imported names that it does not declare itself. An
/// __init__.py, an index.ts or a lib.rs has them from files beside it. A file that is used without
/// names passes on all that it brings in if it declares nothing.
std::vector<UsedFile> passed_on(const UsedFile& file, const FileParts& parts,
                                const ProjectPaths& project);

/// A used file, and what was read of it; null: nothing.
struct ReadFile {
  UsedFile file;
  FilePartsPtr parts;
};

/// What the text of the file `own` uses: used_files(), then what those pass on; kUsedFilesMax at most.
/// `read` is asked for each once.
std::vector<ReadFile> read_used(std::string_view text, const std::string& own,
                                const ProjectPaths& project,
                                const std::function<FilePartsPtr(const std::string& path)>& read);

/// A file that the text uses, and what it declares. Borrows the declarations.
struct Source {
  UsedFile file;
  const std::vector<syntax::Declaration>* declarations = nullptr;
};

/// The head for `text`, at most `bytes_max` bytes of declarations.
///
/// It is selective: a file of which the text mentions nothing has no slot. What the text mentions, of
/// all files, has its place first, then what else the mentioned files declare, as far as there is room.
/// No file has more than half before the others had their turn; each one's declarations stand in its own
/// order. So the head stays the same while the text is edited, but for an import more or
/// less, or a first mention.
Head make_head(std::string_view text, std::span<const Source> sources, std::size_t bytes_max);

/// Whether `now` is worth that everything behind the head is evaluated again: `old` says something that
/// is not so any more, or lacks what the text mentions. `now` is the head of `text` and `sources`. What
/// the text mentions no longer stays: else a word that is typed and deleted costs two evaluations.
bool is_worth_changing(const Head& old, const Head& now, std::span<const Source> sources,
                       std::string_view text);

}  // namespace efimd::context
