#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/recall/batch.h"
#include "daemon/recall/search.h"
#include "daemon/recall/session_text.h"
#include "daemon/text/document.h"

namespace efimd::recall {

/// All text of one project.
///
/// Batches of few files are to become one when there are many: kBatchesMax of a family is what a
/// look-up can afford. That takes up to a second, so another thread does it (Merge).
class Shelf {
 public:
  static constexpr std::size_t kBatchesMax = 24;

  void set_document(std::string_view path, text::SnapshotPtr snapshot);
  void close_document(std::string_view path);
  void add(const BatchPtr& batch);
  /// The smaller half of a family of which there are too many batches; empty if there is none, or
  /// the last that was asked for is not made yet.
  std::vector<HeldBatch> to_merge();
  /// `merged` stands for `from`, as far as their files were not changed or removed since.
  void take_merged(const std::vector<HeldBatch>& from, const BatchPtr& merged);
  void remove_file(std::string_view path);
  void forget(std::string_view path);

  /// Everything there is for a query about `path`.
  void search(Search& search, std::string_view path) const;

  /// Drops the oldest batch: the paths of its files. None if there is no batch.
  std::vector<std::string> drop_batch();
  void limit_session(std::size_t bytes_max) { session_.limit(bytes_max); }
  SessionText& session() { return session_; }

  std::size_t bytes()
      const;  ///< of files with their index, and of session texts; kept, not counted
  std::size_t text_bytes() const;  ///< of these, the text alone
  std::size_t file_count() const { return files_.size(); }
  std::size_t document_count() const { return documents_.size(); }

  std::uint64_t used = 0;  ///< order of use

 private:
  struct Document {
    /// Who is searched in place of the file: the file, because both say the same; the document where
    /// they differ; all of the document, because there is no file. Kept, so that a look-up need not ask
    /// files_ for each document.
    enum class Searched : std::uint8_t { kFile, kDifferences, kDocument };

    text::SnapshotPtr snapshot;
    std::string family;
    Searched searched = Searched::kDocument;
    text::Differences differences = {};  ///< of the file's text and the document
  };
  using Open = std::pair<const std::string, Document>;
  void note_deleted(std::string_view path, const text::Snapshot& old, const text::Snapshot& now);
  void stand_for_file(std::string_view path, Document& document, const text::Snapshot* before);
  void stand_for_itself(std::string_view path);
  void scan_documents(Search& search, std::string_view path, std::string_view family) const;
  void hold(std::unique_ptr<HeldBatch> held);
  void let_go(const HeldBatch* held);
  std::vector<const HeldBatch*> batches_of(std::string_view family) const;

  std::unordered_map<std::string, Document> documents_;
  std::vector<const Open*> by_use_;  ///< documents, the last used first
  std::unordered_map<std::string, PlacedFile> files_;
  std::vector<std::unique_ptr<HeldBatch>> batches_;  ///< oldest first
  SessionText session_;
  std::size_t batch_bytes_ = 0, batch_text_bytes_ = 0, path_bytes_ = 0;
  bool is_merging_ = false;
};

}  // namespace efimd::recall
