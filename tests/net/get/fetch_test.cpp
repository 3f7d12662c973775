#include "net/get/fetch.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "net/get/content_hash.h"
#include "net/get/partial_file.h"
#include "net/get/server_wait.h"
#include "tests/support/temp_dir.h"

namespace efimd::get {

namespace {

constexpr std::string_view kAbc = "abc";
const std::string kSha256OfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// As `git hash-object` says it.
const std::string kGitIdOfAbc = "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f";

}  // namespace

TEST_CASE("content is named as the hub does") {
  ContentHash sha256(ContentHash::Kind::kSha256, 3);
  sha256.add(kAbc.substr(0, 1));
  sha256.add(kAbc.substr(1));
  CHECK(sha256.finish() == kSha256OfAbc);
  ContentHash git(ContentHash::Kind::kGitBlob, 3);
  git.add(kAbc);
  CHECK(git.finish() == kGitIdOfAbc);
}

TEST_CASE("a partial file goes on where another process left it") {
  const test::TempDir folder;
  const PartialFile::Wish wish{folder.path() / "blob", 3, kSha256OfAbc};
  {
    auto first = PartialFile::open(wish);
    REQUIRE(first);
    REQUIRE(first->append(kAbc.substr(0, 2)));
  }
  auto second = PartialFile::open(wish);
  REQUIRE(second);
  CHECK(second->size() == 2);
  REQUIRE(second->append(kAbc.substr(2)));
  CHECK(second->content_is_right());
  REQUIRE(second->finish());
  std::ifstream stream(wish.file);
  CHECK(std::string(std::istreambuf_iterator<char>(stream), {}) == kAbc);
  CHECK_FALSE(std::filesystem::exists(second->path()));
}

TEST_CASE("a partial file that is longer than the whole begins anew") {
  const test::TempDir folder;
  const PartialFile::Wish wish{folder.path() / "blob", 3, kSha256OfAbc};
  std::ofstream(folder.path() / "blob.incomplete") << "longer than that";
  auto file = PartialFile::open(wish);
  REQUIRE(file);
  CHECK(file->size() == 0);
  REQUIRE(file->append(kAbc));
  CHECK(file->content_is_right());
}

TEST_CASE("an interruption ends the reading of a partial file") {
  const test::TempDir folder;
  const auto file = folder.path() / "blob";
  std::ofstream(PartialFile::path_of(file)) << "hello";
  interrupted = true;
  const auto partial = PartialFile::open({file, 11, std::string(64, '0')});
  interrupted = false;
  REQUIRE_FALSE(partial);
  CHECK(partial.error().fault == Fault::kStopped);
}

TEST_CASE("wrong content is seen") {
  const test::TempDir folder;
  auto file = PartialFile::open({folder.path() / "blob", 3, kSha256OfAbc});
  REQUIRE(file);
  REQUIRE(file->append(std::string_view("abd")));
  CHECK_FALSE(file->content_is_right());
}

TEST_CASE("a link in place of a partial file is not followed") {
  const test::TempDir folder;
  std::ofstream(folder.path() / "victim") << "text";
  std::filesystem::create_symlink(folder.path() / "victim", folder.path() / "blob.incomplete");
  CHECK_FALSE(PartialFile::open({folder.path() / "blob", 3, kSha256OfAbc}));
}

TEST_CASE("a lock is held by one at a time, until its end") {
  const test::TempDir folder;
  {
    const auto held = BlobLock::try_take(folder.path() / "lock");
    REQUIRE(held);
    REQUIRE(held->has_value());
    const auto second = BlobLock::try_take(folder.path() / "lock");
    REQUIRE(second);
    CHECK_FALSE(second->has_value());
  }
  CHECK(BlobLock::try_take(folder.path() / "lock")->has_value());
}

TEST_CASE("a disk without room is told with both amounts") {
  const test::TempDir folder;
  CHECK(check_room(folder.path(), 0));
  const auto room = check_room(folder.path() / "not" / "there", std::uint64_t{1} << 60);
  REQUIRE_FALSE(room);
  CHECK(room.error().what.find("1048576.0 TiB") != std::string::npos);
}

TEST_CASE("a wait that a server asks for is read in each of its forms, and others are none") {
  CHECK(asked_wait_s({{"retry-after", "7"}}) == 7);
  CHECK(asked_wait_s({{"retry-after", "Thu, 01 Jan 1970 00:00:10 GMT"}}) == 0);
  CHECK(asked_wait_s({{"retry-after", "99999999999999999999"}}) == -1);
  CHECK(asked_wait_s({{"retry-after", "soon"}}) == -1);
  CHECK(asked_wait_s({}) == -1);
  // As the hub says it.
  CHECK(asked_wait_s({{"ratelimit", "\"api\";r=0;t=55"}}) == 55);
  CHECK(asked_wait_s({{"ratelimit", "\"api\";r=496;t=246"}}) == -1);
  CHECK(asked_wait_s({{"ratelimit", "\"api\";r=0;t="}}) == -1);
  CHECK(asked_wait_s({{"ratelimit", "\"api\";r=0;t=55"}, {"retry-after", "7"}}) == 7);
}

}  // namespace efimd::get
