#include "daemon/completion/mailbox.h"

#include <catch2/catch.hpp>

using namespace efimd;
using namespace efimd::completion;

namespace {

text::SnapshotPtr text_of(const std::string& text) { return text::Document(text).snapshot(); }

JobPtr job(const std::string& uri, const text::SnapshotPtr& snapshot, bool waits = false) {
  Request request;
  request.document = {1, uri};
  request.snapshot = snapshot;
  request.waits = waits;
  return std::make_unique<Job>(std::move(request), [](const Outcome&) {});
}

std::size_t count(Mailbox& mailbox) {
  std::size_t messages = 0;
  for (mailbox.close(); mailbox.take(); ++messages) {
  }
  return messages;
}

}  // namespace

TEST_CASE("the newest message about a document stands for those of its kind") {
  Mailbox mailbox(16);
  const auto newest = text_of("newest");
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(mailbox.post(Dismissal{{1, "a"}, text_of("old")}));
    REQUIRE(mailbox.post(OpenedDocument{.document = {1, "a"}, .snapshot = text_of("old")}));
    REQUIRE(mailbox.post(Focused{{1, i % 2 == 0 ? "a" : "b"}}));
    mailbox.close_document({1, "b"});
  }
  REQUIRE(mailbox.post(Dismissal{{1, "a"}, newest}));
  REQUIRE(mailbox.post(Dismissal{{2, "a"}, newest}));
  std::size_t messages = 0;
  for (mailbox.close(); auto message = mailbox.take(); ++messages)
    if (const auto* dismissal = std::get_if<Dismissal>(&*message))
      CHECK(dismissal->snapshot == newest);
  CHECK(messages == 5);
}

TEST_CASE("of changes of the index that are about a document the newest waits, of others all") {
  Mailbox mailbox(16);
  std::string made;
  const auto post = [&](const std::string& what, std::optional<DocumentKey> document = {}) {
    REQUIRE(mailbox.post(
        IndexChange{[&made, what](recall::Index&) { made += what; }, std::move(document)}));
  };
  post("a1 ", DocumentKey{1, "a"});
  post("x ");
  post("b ", DocumentKey{1, "b"});
  post("y ");
  post("a2 ", DocumentKey{1, "a"});
  recall::Index index;
  for (mailbox.close(); auto message = mailbox.take();)
    std::get<IndexChange>(*message).apply(index);
  CHECK(made == "x b y a2 ");
}

TEST_CASE("an opening follows the closing before it") {
  Mailbox mailbox(16);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(mailbox.post(OpenedDocument{.document = {1, "a"}, .snapshot = text_of("text")}));
    mailbox.close_document({1, "a"});
  }
  REQUIRE(mailbox.post(OpenedDocument{.document = {1, "a"}, .snapshot = text_of("text")}));
  CHECK(std::holds_alternative<DocumentKey>(*mailbox.take()));
  CHECK(std::holds_alternative<OpenedDocument>(*mailbox.take()));
  CHECK(count(mailbox) == 0);
}

namespace {

JobPtr taken(Mailbox& mailbox) { return std::move(std::get<JobPtr>(*mailbox.take())); }

}  // namespace

TEST_CASE("a request that was superseded while it waited is handed back, also when full") {
  Mailbox mailbox(2);
  const auto old = text_of("old"), newer = text_of("newer");
  auto first = job("a", old), second = job("a", newer), other = job("b", old), more = job("c", old);
  REQUIRE(mailbox.post(first));
  CHECK(first == nullptr);
  REQUIRE(mailbox.post(other));
  CHECK_FALSE(mailbox.post(more));
  CHECK(more != nullptr);
  REQUIRE(mailbox.post(second));
  REQUIRE(second != nullptr);
  CHECK(second->request.snapshot == old);
  CHECK(second->stop.stop_requested());
  const JobPtr kept = taken(mailbox), newest = taken(mailbox);
  CHECK(kept->request.document.uri == "b");
  CHECK(newest->request.snapshot == newer);
  CHECK_FALSE(newest->stop.stop_requested());
  CHECK(count(mailbox) == 0);
}

TEST_CASE("who asks for much waits until nothing else does, and is superseded as anybody") {
  Mailbox mailbox(16);
  const auto old = text_of("old"), newer = text_of("newer");
  for (const char* uri : {"a", "b", "c"}) {
    auto flood = job(uri, old, true);
    REQUIRE(mailbox.post(flood));
  }
  auto editor = job("editor", old);
  REQUIRE(mailbox.post(editor));
  REQUIRE(mailbox.post(Focused{{1, "editor"}}));
  // It was patient and is not any more, and the other way round.
  auto again = job("b", newer);
  REQUIRE(mailbox.post(again));
  CHECK(again->request.snapshot == old);
  CHECK(mailbox.until_next().stop_requested());

  CHECK(taken(mailbox)->request.document.uri == "editor");
  CHECK(std::holds_alternative<Focused>(*mailbox.take()));
  auto patient = job("b", old, true);
  REQUIRE(mailbox.post(patient));
  CHECK(patient->request.snapshot == newer);
  for (const char* uri : {"a", "c", "b"}) CHECK(taken(mailbox)->request.document.uri == uri);
  CHECK(count(mailbox) == 0);
}

TEST_CASE("what was taken is not replaced by what comes later") {
  Mailbox mailbox(16);
  REQUIRE(mailbox.post(Focused{{1, "a"}}));
  REQUIRE(mailbox.take());
  REQUIRE(mailbox.post(Focused{{1, "b"}}));
  REQUIRE(mailbox.post(Focused{{1, "c"}}));
  const auto message = mailbox.take();
  CHECK(std::get<Focused>(*message).document.uri == "c");
  CHECK(count(mailbox) == 0);
}
