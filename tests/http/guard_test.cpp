#include "net/http/guard.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::http;
using efimd::test::TempDir;

namespace {

const std::string kToken = "0123456789abcdef0123";
const GuardRules kRules{8012, kToken};

/// As curl sends it.
Head good() {
  Head head;
  head.method = "POST";
  head.target = "/infill";
  head.host = "127.0.0.1:8012";
  head.authorization = "Bearer " + kToken;
  head.content_type = "application/json";
  return head;
}
unsigned status(const Head& head, const GuardRules& rules = kRules) {
  const auto why = refused(head, rules);
  return why ? why->status : 200;
}

}  // namespace

TEST_CASE("a client's request passes, by each name of this machine and each form of the token") {
  CHECK(status(good()) == 200);
  for (const char* host : {"localhost:8012", "LOCALHOST:8012", "[::1]:8012", "127.0.0.1"}) {
    Head head = good();
    head.host = host;
    CHECK(status(head) == 200);
  }
  Head other = good();
  other.authorization.reset();
  other.api_key = kToken;
  CHECK(status(other) == 200);
  other = good();
  other.content_type = "application/json; charset=utf-8";
  CHECK(status(other) == 200);
}

TEST_CASE("G-1 a page whose name was bound to this machine is refused") {
  Head head = good();
  for (const char* host : {"evil.example:8012", "127.0.0.1.evil.example:8012",
                           "localhost.evil.example", "127.0.0.1:8013", "127.0.0.2:8012", ""}) {
    head.host = host;
    INFO(host);
    CHECK(status(head) == 403);
  }
  head.host.reset();
  CHECK(status(head) == 403);
}

TEST_CASE("G-2 requests of web pages are refused, with a token and without rules for one") {
  for (const char* origin : {"https://evil.example", "null", "http://127.0.0.1:8012", ""}) {
    Head head = good();
    head.origin = origin;
    CHECK(status(head) == 403);
    CHECK(status(head, {8012, std::nullopt}) == 403);
  }
  Head head = good();
  head.fetch_site = "cross-site";
  CHECK(status(head) == 403);
}

TEST_CASE("G-3 a POST that a page can send without asking first is refused") {
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""}) {
    Head head = good();
    head.content_type = type;
    CHECK(status(head, {8012, std::nullopt}) == 415);
  }
}

TEST_CASE("G-4 a wrong token, part of one, or none is refused") {
  for (const std::string& value :
       {std::string(), std::string("Bearer "), "Bearer " + kToken + "x",
        "Bearer " + kToken.substr(1), "Basic " + kToken, kToken, "Bearer" + kToken}) {
    Head head = good();
    head.authorization = value;
    INFO(value);
    CHECK(status(head) == 401);
  }
  Head health = good();
  health.method = "GET";
  health.target = "/health";
  health.authorization.reset();
  CHECK(status(health) == 200);
  health.target = "/health/../infill";
  CHECK(status(health) == 401);
}

TEST_CASE("a token is made once, for its user alone, and read again") {
  const TempDir folder;
  const std::string file = (folder / "state" / "http_token").string();
  const auto made = token_in(file);
  REQUIRE(made);
  CHECK(made->size() == 64);
  struct stat of_file {};
  REQUIRE(::stat(file.c_str(), &of_file) == 0);
  CHECK((of_file.st_mode & 0777U) == 0600);
  CHECK(token_in(file).value() == *made);
  CHECK(token_in((folder / "state" / "other").string()).value() != *made);
}

TEST_CASE("a token that others may read, that is a link or no token is refused") {
  const TempDir folder;
  const std::string file = (folder / "http_token").string();
  const auto write = [&](const std::string& text, mode_t mode) {
    ::unlink(file.c_str());
    std::ofstream(file) << text;
    ::chmod(file.c_str(), mode);
  };
  write(kToken + "\n", 0600);
  CHECK(token_in(file).value() == kToken);
  write(kToken, 0640);
  CHECK(token_in(file).error().what.find("others may read") != std::string::npos);
  for (const std::string& text :
       {std::string("short"), std::string(400, 'a'), kToken + " " + kToken}) {
    write(text, 0600);
    CHECK_FALSE(token_in(file));
  }
  ::unlink(file.c_str());
  REQUIRE(::symlink("/etc/hostname", file.c_str()) == 0);
  CHECK_FALSE(token_in(file));
}
