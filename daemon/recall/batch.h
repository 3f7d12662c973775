#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace efimd::recall {

/// Text in one batch; more is left out. With 64 MiB that is five batches, and a look-up costs less
/// with each one less. Making one takes some 0.15 GB for a second.
inline constexpr std::size_t kBatchBytesMax = std::size_t{14} << 20;
/// A file that is larger is data, not code: it is left out.
inline constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

/// A file of a project as its reader saw it.
struct File {
  std::string path;  ///< its identity: the same as of the document that stands for it
  std::string text;
};

/// Files of one language family with the order of their contexts: ready to be searched.
class Batch;
using BatchPtr = std::shared_ptr<const Batch>;

/// Called again and again during long work, after a millisecond of it at most. It may wait, so that
/// the work makes way for what is more urgent.
using Between = std::function<void()>;

/// Makes a batch. This is the costly step (about 100 ms a MiB), so the thread that reads files does
/// it and hands the result over. All files must be of one family; those of others are left out.
BatchPtr make_batch(
    std::span<const File> files, const Between& between = [] {});

/// The files that are in a batch.
std::vector<std::string> paths_of(const Batch& batch);

/// Files on their way into batches, each family apart. The first batch of a family is small, so that
/// there is something to find soon.
///
/// Thread: its owner's.
class Gathering {
 public:
  explicit Gathering(Between between = [] {}) : between_(std::move(between)) {}
  /// The batch that the file completes; null if it completes none. As costly as make_batch().
  BatchPtr add(File file);
  /// A batch of each family that is left, in the order that families came in.
  std::vector<BatchPtr> rest();

 private:
  struct Family {
    std::string name;
    std::vector<File> files;
    std::size_t bytes = 0;
    bool is_first = true;
  };
  BatchPtr made(Family& family) const;
  const Between between_;
  std::vector<Family> families_;
};

/// The family of files in one language: "c" for C and C++, "js" for JavaScript and TypeScript.
/// Otherwise it is the extension in lower case, or the name if there is no extension.
std::string family_of(std::string_view path);

}  // namespace efimd::recall
