#include "daemon/models/config_watch.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <utility>

#include "daemon/models/chosen_model.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using service::ConfigLook;
using Found = ConfigLook::Found;

namespace {

/// A user whose daemon has started with `text` as config.toml; none if it is empty.
class Watched {
 public:
  explicit Watched(const std::string& text) {
    paths_.config_file = folder_ / "config.toml";
    paths_.state_dir = folder_ / "state";
    if (!text.empty()) write(text);
    start();
  }
  /// As a daemon does.
  void start() { watch_ = service::watch_config(paths_, service::config_in_force(paths_)); }
  /// A new file takes the name, so that its state is another one whatever the clock says.
  void write(const std::string& text) const {
    const auto next = folder_ / ("next" + std::to_string(++written_));
    std::ofstream(next) << text;
    std::filesystem::rename(next, paths_.config_file);
  }
  void remove() const { std::filesystem::remove(paths_.config_file); }
  ConfigLook look() const { return watch_(); }
  /// Two looks, because the first at a new file only sees that it is another one.
  ConfigLook settled() const {
    CHECK(look().found == Found::kBeingWritten);
    return look();
  }
  const service::Paths& paths() const { return paths_; }

 private:
  test::TempDir folder_;
  service::Paths paths_;
  std::function<ConfigLook()> watch_;
  mutable int written_ = 0;
};

constexpr char kShort[] = "[completion]\nmax_tokens = 8\n";
constexpr char kLong[] = "[completion]\nmax_tokens = 80\n";

}  // namespace

TEST_CASE("a configuration that is as it was is the same, and one with other values another") {
  const Watched user(kShort);
  CHECK(user.look().found == Found::kSame);
  user.write(kLong);
  CHECK(user.settled().found == Found::kOther);
  CHECK(user.look().found == Found::kOther);
}

TEST_CASE("a file with other comments, or touched alone, is the same configuration") {
  const Watched user(kShort);
  user.write(std::string("# for the train\n") + kShort);
  CHECK(user.settled().found == Found::kSame);
  user.write(std::string("# for the train\n") + kShort);
  CHECK(user.settled().found == Found::kSame);
}

TEST_CASE("a file that is being written is judged once it stays as it is") {
  const Watched user(kShort);
  user.write("");
  CHECK(user.look().found == Found::kBeingWritten);
  user.write("[completion]\n");
  CHECK(user.look().found == Found::kBeingWritten);
  user.write(kLong);
  CHECK(user.settled().found == Found::kOther);
}

TEST_CASE("a malformed file is told with its line until it is corrected") {
  const Watched user(kShort);
  user.write("[completion]\nmax_tokens = \n");
  const ConfigLook malformed = user.settled();
  CHECK(malformed.found == Found::kMalformed);
  REQUIRE(malformed.trouble);
  CHECK(malformed.trouble->line == 2);
  CHECK(malformed.trouble->message.ends_with("; the daemon goes on with what it read before"));
  CHECK(malformed.trouble->message.find("ignored") == std::string::npos);
  CHECK(user.look().trouble == malformed.trouble);
  user.write(kShort);
  const ConfigLook corrected = user.settled();
  CHECK(corrected.found == Found::kSame);
  CHECK_FALSE(corrected.trouble);
}

TEST_CASE("a daemon that has started with a malformed file takes the next one that is not") {
  const Watched user("[completion");
  CHECK(user.look().found == Found::kSame);
  user.write(kLong);
  CHECK(user.settled().found == Found::kOther);
}

TEST_CASE("a file that comes, or goes, is another configuration if its values are") {
  const Watched without("");
  CHECK(without.look().found == Found::kSame);
  without.write("# nothing yet\n");
  CHECK(without.settled().found == Found::kOther);  // `efimd status` names the file that is read
  const Watched with(kShort);
  with.remove();
  CHECK(with.settled().found == Found::kOther);
}

TEST_CASE("the model that `efimd model use` chose is none of the file's changes") {
  Watched user(kShort);
  REQUIRE(service::choose_model_for_good(user.paths(), "/models/chosen.gguf"));
  user.start();
  user.write(std::string("# for the train\n") + kShort);
  CHECK(user.settled().found == Found::kSame);
}
