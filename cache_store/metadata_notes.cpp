// The part of Metadata that keeps the notes on documents.
#include <utility>

#include "cache_store/metadata.h"

namespace efimd::store {

namespace {

// Notes of all models, those of the documents that were used last first, from where they are too many.
constexpr char kForgetNotes[] = R"sql(
DELETE FROM notes WHERE (source, model) IN (
  SELECT source, model FROM (
    SELECT source, model,
           sum(length(note)) OVER (ORDER BY last_use DESC, source, model) AS bytes
    FROM notes JOIN sources ON id = source)
  WHERE bytes > ?)
RETURNING source
)sql";

}  // namespace

Result<std::map<SourceId, std::string>> Metadata::notes(const Digest& model) {
  Result<Statement> select = database_.prepare("SELECT source, note FROM notes WHERE model = ?");
  if (!select) return tl::unexpected(select.error());
  select->bind(1, model);
  std::map<SourceId, std::string> notes;
  for (;;) {
    const Result<bool> more = select->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return notes;
    if (std::string note = select->text(1); note.size() <= kNoteBytesMax)
      notes.emplace(select->integer(0), std::move(note));
  }
}

Result<void> Metadata::set_note(SourceId source, const Digest& model, std::string_view note) {
  Result<Statement> insert =
      database_.prepare("INSERT OR REPLACE INTO notes (source, model, note) VALUES (?, ?, ?)");
  if (!insert) return tl::unexpected(insert.error());
  return insert->bind(1, source).bind(2, model).bind(3, note).run();
}

Result<void> Metadata::remove_notes(const std::function<bool(std::string_view)>& unwanted) {
  Result<Statement> select = database_.prepare("SELECT source, model, note FROM notes");
  if (!select) return tl::unexpected(select.error());
  std::vector<std::pair<SourceId, std::vector<std::byte>>> found;  // a damaged row's model is none
  for (;;) {
    const Result<bool> more = select->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (!unwanted(select->text(2))) continue;
    const std::span<const std::byte> model = select->bytes(1);
    found.emplace_back(select->integer(0), std::vector<std::byte>(model.begin(), model.end()));
  }
  if (found.empty()) return {};
  Result<Transaction> transaction = Transaction::begin(database_);
  if (!transaction) return tl::unexpected(transaction.error());
  Result<Statement> remove = database_.prepare("DELETE FROM notes WHERE source = ? AND model = ?");
  if (!remove) return tl::unexpected(remove.error());
  for (const auto& [source, model] : found)
    if (Result<void> done = remove->bind(1, source).bind(2, std::span(model)).run(); !done)
      return done;
  return transaction->commit();
}

Result<bool> Metadata::limit_notes(std::size_t bytes_max) {
  Result<Statement> forget = database_.prepare(kForgetNotes);
  if (!forget) return tl::unexpected(forget.error());
  const Result<bool> any = forget->bind(1, static_cast<std::int64_t>(bytes_max)).step();
  if (!any) return tl::unexpected(any.error());
  if (const Result<void> done = forget->run(); !done) return tl::unexpected(done.error());
  return *any;
}

}  // namespace efimd::store
