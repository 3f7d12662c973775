#include "net/get/hub.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "net/get/offer.h"

namespace efimd::get {

namespace {

const std::string kCommit(40, 'a');
const std::string kSha256(64, 'b');
const std::string kGitId(40, 'c');

/// A repository's answer with these siblings.
std::string answer(const std::string& siblings, const std::string& more = "") {
  return fmt::format(R"({{"sha": "{}", "siblings": [{}]{}}})", kCommit, siblings, more);
}

std::string sibling(const std::string& path) {
  return fmt::format(
      R"({{"rfilename": "{}", "size": 9, "blobId": "{}", "lfs": {{"sha256": "{}", "size": 9}}}})",
      path, kGitId, kSha256);
}

HubRepository with(const std::vector<std::string>& paths) {
  HubRepository repository;
  repository.name = "a/b";
  repository.commit = kCommit;
  for (const std::string& path : paths) repository.files.push_back({path, 9, kSha256});
  return repository;
}

std::string chosen(const HubRepository& repository, const std::string& weights = "") {
  Asked asked;
  asked.repository = "a/b";
  asked.weights = weights;
  const auto files = choose_files(repository, asked);
  return files ? files->front().path : "";
}

}  // namespace

TEST_CASE("files of LFS are named by their SHA-256, others by git's id") {
  const auto repository = parse_repository(
      answer(sibling("x.gguf") +
             fmt::format(R"(, {{"rfilename": "y.gguf", "size": 5, "blobId": "{}"}})", kGitId)),
      "a/b");
  REQUIRE(repository);
  REQUIRE(repository->files.size() == 2);
  CHECK(repository->files[0].hash == kSha256);
  CHECK(repository->files[1].hash == kGitId);
  CHECK(repository->commit == kCommit);
  CHECK_FALSE(repository->gated);
}

TEST_CASE("a licence comes from the card, else from the tags") {
  const auto license = [](const std::string& more) {
    return parse_repository(answer("", more), "a/b")->license;
  };
  CHECK(license(R"(, "cardData": {"license": "mit"})") == "mit");
  CHECK(license(R"(, "cardData": {"license": "other", "license_name": "qwen-research"})") ==
        "qwen-research");
  CHECK(license(R"(, "tags": ["gguf", "license:apache-2.0"])") == "apache-2.0");
  CHECK(license("").empty());
}

TEST_CASE("a gated repository says so in either of the hub's ways") {
  CHECK(parse_repository(answer("", R"(, "gated": "manual")"), "a/b")->gated);
  CHECK(parse_repository(answer("", R"(, "gated": true)"), "a/b")->gated);
  CHECK_FALSE(parse_repository(answer("", R"(, "gated": false)"), "a/b")->gated);
}

TEST_CASE("files without a safe path, a size or a name of their content are left out") {
  for (const char* path : {"../x.gguf", "/x.gguf", "a//b.gguf", "a/../b.gguf", "", "a\\\\b.gguf"}) {
    INFO(path);
    CHECK(parse_repository(answer(sibling(path)), "a/b")->files.empty());
  }
  CHECK(
      parse_repository(answer(R"({"rfilename": "x.gguf", "size": 9, "blobId": "../../x"})"), "a/b")
          ->files.empty());
  CHECK(parse_repository(
            answer(R"({"rfilename": "x.gguf", "size": -9, "blobId": ")" + kGitId + "\"}"), "a/b")
            ->files.empty());
  CHECK(parse_repository(answer("3, null, []"), "a/b")->files.empty());
}

TEST_CASE("what is no answer of a hub is refused") {
  for (const char* text : {"", "<html>", "[]", "{}", R"({"sha": "main"})", R"({"sha": 3})"}) {
    INFO(text);
    CHECK_FALSE(parse_repository(text, "a/b").has_value());
  }
}

TEST_CASE("without a type Q4_K_M is taken, else Q8_0, else the first model") {
  CHECK(chosen(with({"x-Q2_K.gguf", "x-Q8_0.gguf", "x-Q4_K_M.gguf"})) == "x-Q4_K_M.gguf");
  CHECK(chosen(with({"x-Q2_K.gguf", "x-q8_0.gguf"})) == "x-q8_0.gguf");
  CHECK(chosen(with({"README.md", "mmproj-x.gguf", "x-imatrix.gguf", "x-Q2_K.gguf"})) ==
        "x-Q2_K.gguf");
  CHECK(chosen(with({"README.md"})).empty());
}

TEST_CASE("a file of the catalogue that was renamed is known by its type, another one is not") {
  Asked asked;
  asked.file = "x-q4_k_m.gguf";
  const auto renamed = with({"x-Q8_0.gguf", "X.Q4_K_M.gguf"});
  CHECK_FALSE(choose_files(renamed, asked).has_value());
  asked.offered.emplace().weights = "Q4_K_M";
  const auto files = choose_files(renamed, asked);
  REQUIRE(files);
  CHECK(files->front().path == "X.Q4_K_M.gguf");
  CHECK_FALSE(choose_files(with({"x-Q8_0.gguf"}), asked).has_value());
}

TEST_CASE("a type is a whole word of the file's name") {
  const auto repository = with({"x-Q4_K_M.gguf", "x.Q4_K_S.gguf"});
  CHECK(chosen(repository, "q4_k_s") == "x.Q4_K_S.gguf");
  CHECK(chosen(repository, "Q4_K").empty());
  CHECK(chosen(repository, "K_M").empty());
}

TEST_CASE("a split model is chosen by its first part and has all of them") {
  Asked asked;
  const auto files = choose_files(
      with({"x-Q8_0-00002-of-00002.gguf", "x-Q8_0-00001-of-00002.gguf", "README.md"}), asked);
  REQUIRE(files);
  REQUIRE(files->size() == 2);
  CHECK((*files)[0].path == "x-Q8_0-00001-of-00002.gguf");
  CHECK((*files)[1].path == "x-Q8_0-00002-of-00002.gguf");
  CHECK_FALSE(choose_files(with({"x-Q8_0-00001-of-00003.gguf"}), asked).has_value());
}

TEST_CASE("a token is not sent in clear to another machine") {
  setenv("HF_TOKEN", "hf_secret", 1);
  const auto token = [](const char* endpoint) {
    setenv("HF_ENDPOINT", endpoint, 1);
    std::string note;
    const auto hub = hub_access(note);
    return hub ? hub->token : std::string("none");
  };
  for (const char* here :
       {"https://h", "http://127.0.0.1:80", "http://localhost", "http://[::1]:9"}) {
    INFO(here);
    CHECK(token(here) == "hf_secret");
  }
  for (const char* other : {"http://h", "http://127.example.org", "http://localhost.example.org"}) {
    INFO(other);
    CHECK(token(other).empty());
  }
  unsetenv("HF_TOKEN");
  unsetenv("HF_ENDPOINT");
}

TEST_CASE("an address keeps the path's slashes and escapes the rest") {
  const HubAccess hub{"https://h", ""};
  CHECK(file_address(hub, with({}), {"a b/c#d.gguf", 9, kSha256}) ==
        "https://h/a/b/resolve/" + kCommit + "/a%20b/c%23d.gguf");
}

TEST_CASE("a size that no hub names is not said to be nothing") {
  Offer offer;
  CHECK(offer_text(offer).find("size     not known before it is loaded\n") != std::string::npos);
  offer.bytes = 2048;
  CHECK(offer_text(offer).find("size     2.0 KiB\n") != std::string::npos);
}

}  // namespace efimd::get
