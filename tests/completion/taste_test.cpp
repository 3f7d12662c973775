#include "daemon/completion/documents/taste.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "daemon/completion/documents/taste_keeper.h"
#include "tests/completion/harness.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::completion;

namespace {

Taste after(int count, Verdict verdict, double chance = 0.5) {
  Taste taste;
  for (int i = 0; i < count; ++i) taste.note("c", verdict, chance);
  return taste;
}

}  // namespace

TEST_CASE("chances go up where suggestions are taken, down where they are rejected") {
  CHECK(after(60, Verdict::kAccepted).adapted("c", 0.5) > 0.55);
  CHECK(after(60, Verdict::kTypedThrough).adapted("c", 0.5) > 0.55);
  CHECK(after(60, Verdict::kRejected).adapted("c", 0.5) < 0.45);
  const double ignored = after(60, Verdict::kIgnored).adapted("c", 0.5);
  CHECK(ignored < 0.5);
  CHECK(ignored > after(60, Verdict::kRejected).adapted("c", 0.5));
  CHECK(after(60, Verdict::kRejected).adapted("py", 0.5) == 0.5);
  CHECK(after(10, Verdict::kRejected).adapted("c", 0.5) == 0.5);  // too few to tell
  CHECK(after(10000, Verdict::kRejected).rows().at("c").shift >= -Taste::kShiftMax);
}

TEST_CASE("chances that come true stay as they are") {
  Taste taste;
  for (int i = 0; i < 400; ++i)
    taste.note("c", i % 4 == 0 ? Verdict::kRejected : Verdict::kAccepted, 0.75);
  CHECK(taste.adapted("c", 0.75) == Approx(0.75).margin(0.03));
}

TEST_CASE("eagerness auto follows what is taken; the others are the user's word") {
  CHECK(after(60, Verdict::kAccepted).eagerness("c", Eagerness::kAuto) == Eagerness::kHigh);
  CHECK(after(60, Verdict::kRejected).eagerness("c", Eagerness::kAuto) == Eagerness::kLow);
  CHECK(after(60, Verdict::kIgnored).eagerness("c", Eagerness::kAuto) == Eagerness::kMedium);
  CHECK(after(60, Verdict::kRejected).eagerness("py", Eagerness::kAuto) == Eagerness::kMedium);
  CHECK(after(60, Verdict::kRejected).eagerness("c", Eagerness::kHigh) == Eagerness::kHigh);
}

TEST_CASE("what is written is read again, and no more than so many languages are kept") {
  Taste taste = after(50, Verdict::kAccepted);
  for (int i = 0; i < 200; ++i) taste.note("l" + std::to_string(i), Verdict::kIgnored, 0.2);
  CHECK(taste.rows().size() == Taste::kLanguagesMax);
  CHECK(taste.rows().contains("c"));
  const std::string text = taste.to_text();
  CHECK(text.size() <= Taste::kFileBytesMax);
  Taste again;
  REQUIRE(again.read(text));
  CHECK(again.to_text() == text);
  CHECK_FALSE(again.take_changed());
}

TEST_CASE("a damaged file changes nothing and says so") {
  Taste taste = after(50, Verdict::kAccepted);
  const std::string before = taste.to_text();
  for (const std::string& bad :
       {std::string(), std::string("efimd taste 2\n"), before + "x", before + "c 1 2 3\n",
        before + "py 1 2 3 nan 0\n", before + "py 1 2 3 4 99\n", before + "py -1 2 3 4 0\n",
        before + std::string(Taste::kFileBytesMax, 'x'), before.substr(0, before.size() - 3)}) {
    CAPTURE(bad);
    CHECK_FALSE(taste.read(bad).has_value());
    CHECK(taste.to_text() == before);
  }
}

namespace {

constexpr char kUri[] = "file:///project/a.cpp";

/// A service that learns, with its file in `folder`.
struct Learning {
  explicit Learning(const std::filesystem::path& file)
      : keeper(std::make_shared<TasteKeeper>(file)),
        harness(test::says("suggested();"), settings()) {}
  completion::CompletionService::Settings settings() const {
    auto made = test::Harness::fixed_window();
    made.taste = keeper;
    return made;
  }
  TasteRow row() {
    harness.ask(kUri);  // what came of the suggestion before is known now
    const auto status = harness.service->status();
    const auto found = status.taste.find("c");
    return found == status.taste.end() ? TasteRow{} : found->second;
  }
  /// Waits until the service has come to rest, and so has saved and published.
  void end() { harness.service.reset(); }

  std::shared_ptr<TasteKeeper> keeper;
  test::Harness harness;
};

TasteRow kept_in(const std::filesystem::path& file) {
  Taste taste;
  REQUIRE(TasteKeeper(file).load(taste));
  const auto found = taste.rows().find("c");
  return found == taste.rows().end() ? TasteRow{} : found->second;
}

}  // namespace

TEST_CASE("what becomes of a suggestion is counted once and kept for the next daemon") {
  const test::TempDir folder;
  const auto file = folder.path() / "taste";
  {
    Learning daemon(file);
    daemon.harness.set("int main() { ^", kUri);
    SECTION("accepted") {
      daemon.harness.accept(*daemon.harness.ask(kUri).item, kUri);
      daemon.row();
      daemon.end();
      CHECK(kept_in(file).accepted == 1);
    }
    SECTION("typed through, key by key") {
      REQUIRE(daemon.harness.ask(kUri).item);
      for (const char* key : {"s", "u", "g"}) {
        daemon.harness.type(key, kUri);
        REQUIRE(daemon.harness.ask(kUri).item);
      }
      daemon.end();
      CHECK(kept_in(file).typed_through == 1);
      CHECK(kept_in(file).shown() == 1);
    }
    SECTION("dismissed, and then written over") {
      REQUIRE(daemon.harness.ask(kUri).item);
      daemon.harness.dismiss(kUri);
      daemon.harness.type("x", kUri);
      daemon.row();
      daemon.end();
      CHECK(kept_in(file).rejected == 1);
    }
    SECTION("rejected by writing something else") {
      REQUIRE(daemon.harness.ask(kUri).item);
      daemon.harness.type("x", kUri);
      daemon.row();
      daemon.end();
      CHECK(kept_in(file).rejected == 1);
    }
  }
  CHECK(kept_in(file).shown() == 1);
  // The status tells it before anything is asked.
  Learning daemon(file);
  const auto status = daemon.harness.service->status();
  REQUIRE(status.taste.contains("c"));
  CHECK(status.taste.at("c").shown() == 1);
}

TEST_CASE("a request ahead of the user tells nothing of what was shown") {
  const test::TempDir folder;
  const auto file = folder.path() / "taste";
  {
    Learning daemon(file);
    test::Harness& user = daemon.harness;
    user.set("int main() { ^", kUri);
    const auto ask_ahead = [&](const completion::Item& shown) {
      user.accept(shown, kUri);
      completion::Request request = user.request(kUri);
      request.ahead = true;
      REQUIRE(user.submit(std::move(request)).get().item);
    };
    const auto first = user.ask(kUri).item;
    REQUIRE(first);
    ask_ahead(*first);
    SECTION("who types it is not said to have accepted it") {
      user.erase(first->text.size(), kUri);
      user.type("s", kUri);
      CHECK(user.shown(kUri) == "uggested();");
      daemon.end();
      CHECK(kept_in(file).accepted == 0);
      CHECK(kept_in(file).typed_through == 1);
    }
    SECTION("who writes something else rejects what was shown") {
      user.erase(first->text.size(), kUri);
      user.type("x", kUri);
      user.ask(kUri);
      daemon.end();
      CHECK(kept_in(file).rejected == 1);
    }
    SECTION("it is shown again where it was, because nobody took it and deleted it") {
      user.erase(first->text.size(), kUri);
      CHECK(user.shown(kUri) == "suggested();");
      daemon.end();
      CHECK(kept_in(file).shown() == 0);
    }
    SECTION("who accepts it is known at the next key") {
      user.type("\n", kUri);
      user.ask(kUri);
      daemon.end();
      CHECK(kept_in(file).accepted == 1);
    }
  }
  CHECK(kept_in(file).shown() <= 1);
}

TEST_CASE("the name of a file without an extension is not written down") {
  const test::TempDir folder;
  const auto file = folder.path() / "taste";
  constexpr char kNamed[] = "file:///project/customer_acme";
  {
    Learning daemon(file);
    daemon.harness.set("int main() { ^", kNamed);
    daemon.harness.accept(*daemon.harness.ask(kNamed).item, kNamed);
    daemon.harness.ask(kNamed);
    daemon.end();
  }
  Taste taste;
  REQUIRE(TasteKeeper(file).load(taste));
  REQUIRE(taste.rows().size() == 1);
  CHECK(taste.rows().begin()->first == "other");
}

TEST_CASE("a damaged file of tastes is passed over, with a message that names it") {
  const test::TempDir folder;
  const auto file = folder.path() / "taste";
  std::ofstream(file) << "nonsense";
  Learning daemon(file);
  CHECK(daemon.harness.service->status().taste_trouble.find(file.string()) != std::string::npos);
  daemon.harness.set("int main() { ^", kUri);
  CHECK(daemon.harness.ask(kUri).item);
}

TEST_CASE("tastes are forgotten in memory and on the disk") {
  const test::TempDir folder;
  const auto file = folder.path() / "taste";
  {
    Learning daemon(file);
    daemon.harness.set("int main() { ^", kUri);
    daemon.harness.accept(*daemon.harness.ask(kUri).item, kUri);
    daemon.row();
    daemon.harness.service->forget_taste();
    daemon.end();
  }
  CHECK_FALSE(std::filesystem::exists(file));
}
