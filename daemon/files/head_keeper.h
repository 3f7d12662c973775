#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/completion/request.h"
#include "daemon/files/exclusions.h"
#include "daemon/files/file_threads.h"

namespace efimd::service {

/// Makes the heads of documents: reads what the files declare that a document imports.
///
/// Of a file that an editor has open, the editor's text is read. Others must be among those that the
/// project's reader may read. So secrets and excluded files are in no head. A document is answered when
/// it is asked for, and again when its project or a file that it uses has changed. That is only done if
/// the new head is worth that everything behind it is evaluated again.
///
/// Thread: any may call; all calls return at once. The work is done on file threads, one document of a
/// project after another: a project whose file system stalls holds up its own heads only. Nobody waits for
/// it; after stop() nothing of Settings is called.
/// Limits: kDocumentsMax, oldest out; kOutlinesMax of files, kept by their stamps.
class HeadKeeper {
 public:
  static constexpr std::size_t kDocumentsMax = 128;
  static constexpr std::size_t kOutlinesMax = 1024;
  /// Bytes of declarations in a head: more than 15 % of the widest default window.
  static constexpr std::size_t kHeadBytesMax = std::size_t{20} << 10;

  struct Settings {
    Exclusions exclusions;
    std::shared_ptr<FileThreads> threads;
    /// The files of a project that may be read, absolute; none while they are not known.
    std::function<std::vector<std::string>(const std::string& project)> files;
    std::function<void(completion::HeadAnswer)> deliver;  ///< called on a file thread
  };
  explicit HeadKeeper(Settings settings);
  ~HeadKeeper();
  HeadKeeper(const HeadKeeper&) = delete;
  HeadKeeper& operator=(const HeadKeeper&) = delete;

  /// Asks for the document's head, or forgets it if the question has no snapshot.
  void ask(completion::HeadQuestion question);
  /// Files of the project were made, changed or removed, or it is read for the first time.
  void project_changed(const std::string& project);
  /// The file was purged: no head shows it until it is used again, and what is known of its text is
  /// dropped. Documents that used it are new when they are asked for again.
  void forget(const std::string& path);
  /// Everything was purged: what is known of any text is dropped. Documents are new when they are asked
  /// for again, and their heads are made from the files as they then are.
  void forget_all();
  /// An editor uses the file, so heads may show it again after a purge.
  void use(const std::string& path);
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace efimd::service
