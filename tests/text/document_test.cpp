#include "daemon/text/document.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"

using namespace efimd;
using text::Document;
using text::Edit;
using text::LineIndex;
using text::Revision;
using text::SnapshotPtr;

namespace {

std::vector<Edit> edits_of(const text::Snapshot::Since& since) {
  return {since.edits.begin(), since.edits.end()};
}

/// `text` with `edits` applied the plain way; the inserted bytes are taken from `after` once all
/// are applied, so this checks sizes and places. Returns whether text outside the edits agrees.
bool leads_to(std::string_view before, std::span<const Edit> edits, std::string_view after) {
  // A byte of `before` that no edit touched carries its place; inserted bytes carry none.
  constexpr std::size_t kInserted = static_cast<std::size_t>(-1);
  std::vector<std::size_t> origin(before.size());
  for (std::size_t i = 0; i < origin.size(); ++i) origin[i] = i;
  for (const Edit& edit : edits) {
    if (edit.begin + edit.removed > origin.size()) return false;
    const auto at =
        origin.erase(origin.begin() + static_cast<std::ptrdiff_t>(edit.begin),
                     origin.begin() + static_cast<std::ptrdiff_t>(edit.begin + edit.removed));
    origin.insert(at, edit.inserted, kInserted);
  }
  if (origin.size() != after.size()) return false;
  for (std::size_t i = 0; i < origin.size(); ++i) {
    if (origin[i] != kInserted && before[origin[i]] != after[i]) return false;
  }
  return true;
}

/// Moves down to a code point's start, by looking at whole code points from the front.
std::size_t boundary(const std::string& text, std::size_t byte) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t next = at + static_cast<std::size_t>(utf8::decode(text, at).length);
    if (next > byte) break;
    at = next;
  }
  return at;
}

std::string random_text(std::mt19937_64& random, std::size_t pieces_max) {
  static const std::vector<std::string> kPieces = {
      "\r", "\n", "\r\n", "a", "b ", "\u00e9", "\u20ac", "\U0001F600", "\xFF", "\xE2\x82"};
  std::string out;
  for (std::size_t left = random() % (pieces_max + 1); left > 0; --left)
    out += kPieces[random() % kPieces.size()];
  return out;
}

}  // namespace

TEST_CASE("a replacement makes a new snapshot and leaves the old one as it was") {
  Document document("int a;\nint b;\n");
  const SnapshotPtr before = document.snapshot();
  REQUIRE(document.replace(4, 5, "long_name"));
  CHECK(before->bytes() == "int a;\nint b;\n");
  CHECK(document.snapshot()->bytes() == "int long_name;\nint b;\n");
  CHECK(document.snapshot()->line(1) == "int b;");
  CHECK(document.snapshot()->serial() == before->serial() + 1);
  CHECK(before->recent_edits().empty());
}

TEST_CASE("ends are clamped to the text and moved down to code point boundaries") {
  Document document("a\u20acb");
  REQUIRE(document.replace(2, 3, "x"));  // both inside the euro: nothing is removed before it
  CHECK(document.snapshot()->bytes() == "ax\u20acb");
  REQUIRE(document.replace(3, 99, "y"));
  CHECK(document.snapshot()->bytes() == "axy");
  REQUIRE(document.replace(50, 99, "z"));
  CHECK(document.snapshot()->bytes() == "axyz");
  REQUIRE(document.replace(3, 1, "!"));  // an end before the begin removes nothing
  CHECK(document.snapshot()->bytes() == "axy!z");
}

TEST_CASE("invalid UTF-8 becomes U+FFFD and edits count the bytes that were stored") {
  Document document("a\xFF");
  CHECK(document.snapshot()->bytes() == "a\uFFFD");
  REQUIRE(document.replace(0, 0, "\xE2\x82"));
  CHECK(document.snapshot()->bytes() == "\uFFFD\uFFFDa\uFFFD");
  CHECK(document.snapshot()->recent_edits().back() == Edit{document.snapshot()->serial(), 0, 0, 6});
}

TEST_CASE("a document's lines end with \"\\n\", as those that models know") {
  CHECK(text::document_text("a\r\nb\rc\n\r\n\r\r\n\r") == "a\nb\nc\n\n\n\n\n");
  Document document("a\r\nb\r\n");
  CHECK(document.snapshot()->bytes() == "a\nb\n");
  REQUIRE(document.replace(1, 2, "x\r\n\r\ny"));
  CHECK(document.snapshot()->bytes() == "ax\n\nyb\n");
  CHECK(document.snapshot()->recent_edits().back() == Edit{document.snapshot()->serial(), 1, 1, 4});
  REQUIRE(document.replace(2, 2, "z\r"));  // with the "\n" behind it, it is one line end
  CHECK(document.snapshot()->bytes() == "axz\n\nyb\n");
}

TEST_CASE("an edit is only what it changes, in whole code points") {
  const auto edits = [](const char* before, const char* after) {
    Document document(before);
    REQUIRE(document.replace_all(after));
    CHECK(document.snapshot()->bytes() == after);
    return edits_of(document.snapshot()->edits_since(document.snapshot()->serial() - 1));
  };
  const auto is = [](const std::vector<Edit>& made, std::size_t begin, std::size_t removed,
                     std::size_t inserted) {
    return made.size() == 1 && made[0].begin == begin && made[0].removed == removed &&
           made[0].inserted == inserted;
  };
  CHECK(is(edits("int a;\nint b;\n", "int a;\nint xb;\n"), 11, 0, 1));
  CHECK(is(edits("abc", "ac"), 1, 1, 0));
  CHECK(is(edits("aaa", "aaaa"), 3, 0, 1));
  CHECK(is(edits("x\u00e9y", "x\u00e8y"), 1, 2, 2));  // C3 A9 and C3 A8
  CHECK(is(edits("x\u0429y", "x\u04e9y"), 1, 2, 2));  // D0 A9 and D3 A9
  CHECK(is(edits("\u20ac", "\u20ac\u20ac"), 3, 0, 3));
  Document document("same\r\n");
  const SnapshotPtr before = document.snapshot();
  REQUIRE(document.replace_all("same\r\n"));
  REQUIRE(document.replace(2, 2, ""));
  CHECK(document.snapshot() == before);
}

TEST_CASE(
    "thousands of random edits agree with a plain string, its line index and its edit history") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 60; ++round) {
    std::string model = text::document_text(random_text(random, 40));
    Document document(model);
    std::vector<SnapshotPtr> versions = {document.snapshot()};
    for (int edit = 0; edit < 60; ++edit) {
      const std::size_t begin = random() % (model.size() + 3);
      const std::size_t end = begin + random() % 8;
      const std::string inserted = random_text(random, 4);
      const std::size_t from = boundary(model, begin);
      const std::size_t to = std::max(from, boundary(model, end));
      const bool joins =
          inserted.ends_with('\r') && model.substr(std::min(to, model.size()), 1) == "\n";
      model.replace(from, to - from,
                    text::document_text(inserted.substr(0, inserted.size() - (joins ? 1 : 0))));
      REQUIRE(document.replace(begin, end, inserted));
      const text::Snapshot& snapshot = *document.snapshot();
      REQUIRE(snapshot.bytes() == model);
      REQUIRE(utf8::valid_prefix(model) == model.size());
      REQUIRE(snapshot.lines() == LineIndex(model));
      const text::Snapshot& old = *versions[random() % versions.size()];
      const text::Snapshot::Since since = snapshot.edits_since(old.serial());
      REQUIRE(since.complete);
      REQUIRE(leads_to(old.bytes(), since.edits, snapshot.bytes()));
      versions.push_back(document.snapshot());
    }
  }
}

TEST_CASE("no edits lead from a document to another one, not even to the same text opened again") {
  Document first("same text"), second("same text");
  REQUIRE(second.replace(0, 4, "some"));
  CHECK_FALSE(second.snapshot()->edits_since(first.snapshot()->serial()).complete);
  CHECK_FALSE(first.snapshot()->edits_since(second.snapshot()->serial()).complete);
}

TEST_CASE("edits since a version are those behind it, oldest first") {
  Document document("abc");
  const std::uint64_t opened = document.snapshot()->serial();
  REQUIRE(document.replace(0, 1, "xy"));
  REQUIRE(document.replace(4, 4, "!"));
  const SnapshotPtr snapshot = document.snapshot();
  const Edit first{opened + 1, 0, 1, 2};
  const Edit second{opened + 2, 4, 0, 1};
  CHECK(edits_of(snapshot->edits_since(opened)) == std::vector<Edit>{first, second});
  CHECK(edits_of(snapshot->edits_since(opened + 1)) == std::vector<Edit>{second});
  CHECK(snapshot->edits_since(opened + 2).complete);
  CHECK(snapshot->edits_since(opened + 2).edits.empty());
  CHECK_FALSE(snapshot->edits_since(opened + 3).complete);
  CHECK_FALSE(snapshot->edits_since(opened - 1).complete);
}

TEST_CASE("only the latest edits are remembered, and older readers are told so") {
  Document document("");
  const std::uint64_t opened = document.snapshot()->serial();
  for (std::size_t i = 0; i <= text::kRecentEditsMax; ++i) REQUIRE(document.replace(0, 0, "x"));
  CHECK(document.snapshot()->recent_edits().size() == text::kRecentEditsMax);
  CHECK_FALSE(document.snapshot()->edits_since(opened).complete);
  CHECK(document.snapshot()->edits_since(opened + 1).complete);
}

TEST_CASE(
    "a revision shows each edit the text that the one before left, and becomes one snapshot") {
  Document document("one\ntwo\n");
  Revision revision = document.revise();
  CHECK(revision.line(1) == "two");
  REQUIRE(revision.replace(0, 0, "zero\n"));
  CHECK(revision.line(1) == "one");
  REQUIRE(revision.replace(revision.lines().start(2), revision.lines().start(3), ""));
  CHECK(document.snapshot()->bytes() == "one\ntwo\n");
  const std::uint64_t before = document.snapshot()->serial();
  document.adopt(std::move(revision));
  CHECK(document.snapshot()->bytes() == "zero\none\n");
  CHECK(document.snapshot()->serial() == before + 2);
  CHECK(edits_of(document.snapshot()->edits_since(before)) ==
        std::vector<Edit>{{before + 1, 0, 0, 5}, {before + 2, 9, 4, 0}});
}

TEST_CASE(
    "a revision without edits adopts the same snapshot, and one that is dropped changes nothing") {
  Document document("x");
  const SnapshotPtr before = document.snapshot();
  document.adopt(document.revise());
  CHECK(document.snapshot() == before);
  REQUIRE(document.revise().replace(0, 1, "y"));
  CHECK(document.snapshot() == before);
}

TEST_CASE("a revision of more edits than are remembered keeps the last ones") {
  Document document("");
  Revision revision = document.revise();
  for (std::size_t i = 0; i < text::kRecentEditsMax + 5; ++i) REQUIRE(revision.replace(i, i, "x"));
  document.adopt(std::move(revision));
  const text::Snapshot& snapshot = *document.snapshot();
  REQUIRE(snapshot.recent_edits().size() == text::kRecentEditsMax);
  CHECK(snapshot.recent_edits().back().begin == text::kRecentEditsMax + 4);
  CHECK(snapshot.edits_since(snapshot.serial() - text::kRecentEditsMax).complete);
}

TEST_CASE("replacing all is one edit of what differs") {
  Document document("old text");
  REQUIRE(document.replace_all("new\rtext"));
  CHECK(document.snapshot()->line(1) == "text");
  CHECK(document.snapshot()->recent_edits().back() == Edit{document.snapshot()->serial(), 0, 4, 4});
}

TEST_CASE("a document past the limit is refused and stays what it was") {
  REQUIRE(Document::open("x"));
  const std::string half(text::kDocumentBytesMax / 2, 'x');
  Result<Document> document = Document::open(half);
  REQUIRE(document);
  REQUIRE(document->replace(0, 0, half));
  const SnapshotPtr full = document->snapshot();
  const Result<void> grown = document->replace(5, 5, "y");
  REQUIRE_FALSE(grown);
  CHECK(grown.error().fault == Fault::kBadInput);
  CHECK_THAT(grown.error().message(), Catch::Contains("67108865 bytes"));
  CHECK(document->snapshot() == full);
  REQUIRE(document->replace(5, 6, "y"));  // the same size is fine
  CHECK_FALSE(Document::open(half + half + "x"));
}

TEST_CASE("a 50 MB document is edited by typing") {
  std::string source;
  while (source.size() < (50U << 20U)) source += "  std::vector<int> values = {1, 2, 3};\n";
  Document document(source);
  for (std::size_t i = 0; i < 5; ++i) REQUIRE(document.replace(1000 + i, 1000 + i, "x"));
  CHECK(document.snapshot()->bytes().size() == source.size() + 5);
  CHECK(document.snapshot()->lines() == LineIndex(document.snapshot()->bytes()));
}

TEST_CASE("a didChange that replaces thousands of places in a large document is one copy of it") {
  std::string source;
  while (source.size() < (1U << 20U)) source += "old_name();\n";
  Document document(source);
  Revision revision = document.revise();
  const std::size_t lines = revision.lines().line_count() - 1;
  constexpr std::size_t kChanges = 5000;
  for (std::size_t i = 0; i < kChanges; ++i) {  // bottom to top, as VS Code sends them
    const std::size_t start = revision.lines().start(lines - 1 - i);
    REQUIRE(revision.replace(start, start + 3, "renamed"));
  }
  document.adopt(std::move(revision));
  const text::Snapshot& snapshot = *document.snapshot();
  CHECK(snapshot.bytes().size() == source.size() + 4 * kChanges);
  CHECK(snapshot.line(lines - kChanges) == "renamed_name();");
  CHECK(snapshot.line(lines - kChanges - 1) == "old_name();");
  CHECK(snapshot.lines() == LineIndex(snapshot.bytes()));
}

TEST_CASE("a revision that would move too many bytes is refused instead of taking minutes") {
  const Document document(std::string(text::kDocumentBytesMax - 1024, 'x'));
  Revision revision = document.revise();
  constexpr std::size_t kPossible = text::kRevisionBytesMovedMax / text::kDocumentBytesMax;
  std::size_t edits = 0;
  Result<void> replaced;
  while ((replaced = revision.replace(0, 1, edits % 2 == 0 ? "y" : "x"))) ++edits;
  CHECK(edits >= kPossible);
  CHECK(edits <= kPossible + 1);
  CHECK_THAT(replaced.error().message(), Catch::Contains("replacements"));
}
