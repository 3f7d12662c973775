#include "net/get/asked.h"

#include <catch2/catch.hpp>

#include "net/get/transport.h"

namespace efimd::get {

namespace {

service::OfferedModel offered() {
  service::OfferedModel model;
  model.name = "coder";
  model.repository = "org/coder-GGUF";
  model.file = "coder.gguf";
  return model;
}

Result<Asked> asked(std::string_view text) {
  return parse_asked(text, {offered()}, "https://mirror.example");
}

}  // namespace

TEST_CASE("a name of the catalogue is its repository and file") {
  const auto found = asked("coder");
  REQUIRE(found);
  CHECK(found->repository == "org/coder-GGUF");
  CHECK(found->file == "coder.gguf");
  CHECK(found->offered.has_value());
}

TEST_CASE("a file of the catalogue is known by its address, too") {
  const auto found = asked("https://mirror.example/org/coder-GGUF/blob/main/coder.gguf");
  REQUIRE(found);
  CHECK(found->offered.has_value());
  CHECK_FALSE(asked("org/coder-GGUF:Q8_0")->offered.has_value());
}

TEST_CASE("a repository may have a type or a file behind a colon") {
  CHECK(asked("a/b")->weights.empty());
  CHECK(asked("a/b:q4_k_m")->weights == "q4_k_m");
  CHECK(asked("a/b:x.gguf")->file == "x.gguf");
  CHECK(asked("hf.co/a/b:Q8_0")->repository == "a/b");
}

TEST_CASE("an address of the hub names repository, revision and file") {
  const auto found = asked("https://huggingface.co/a/b/resolve/v1.0/q8/x%20y.gguf?download=true");
  REQUIRE(found);
  CHECK(found->repository == "a/b");
  CHECK(found->revision == "v1.0");
  CHECK(found->file == "q8/x y.gguf");
  CHECK(found->url.empty());
  CHECK(asked("https://huggingface.co/a/b")->revision == "main");
  CHECK(asked("https://huggingface.co/a/b/tree/dev")->revision == "dev");
}

TEST_CASE("an address elsewhere is taken as it is, under the file's own name") {
  const auto found = asked("https://example.org/m/x.gguf?v=1");
  REQUIRE(found);
  CHECK(found->repository.empty());
  CHECK(found->file == "x.gguf");
  CHECK(found->url == "https://example.org/m/x.gguf?v=1");
}

TEST_CASE("what names nothing, or something outside, is refused") {
  for (const char* text : {"",
                           "a",
                           "a/",
                           "/b",
                           "a/b/c",
                           "a/..",
                           "../b",
                           "a/b:",
                           "a/b:../x.gguf",
                           "a/b:/x.gguf",
                           "a--b/c",
                           "-a/b",
                           "a b/c",
                           "a/b:x y",
                           "https://",
                           "https:///x.gguf",
                           "ftp://h/x.gguf",
                           "https://h/x.bin",
                           "https://h/..%2fx.gguf",
                           "https://huggingface.co/a",
                           "https://huggingface.co/a/b/resolve/main/",
                           "https://huggingface.co/a/b/raw/main/x.gguf",
                           "https://huggingface.co/a/b/resolve/main/%2e%2e/x.gguf",
                           "a/b:x\n.gguf"}) {
    INFO(text);
    CHECK_FALSE(asked(text).has_value());
  }
}

TEST_CASE("the origin of an address is its scheme, host and port") {
  CHECK(origin_of("HTTPS://Host.Example:443/x") == "https://host.example");
  CHECK(origin_of("https://h:8443/x") == "https://h:8443");
  CHECK(origin_of("http://h/x") == "http://h");
  CHECK(origin_of("file:///etc/passwd").empty());
  CHECK(origin_of("h/x").empty());
}

TEST_CASE("a proxy is one for the address's scheme, and spares what NO_PROXY names") {
  const auto proxy = [](const char* no_proxy, const char* url) {
    setenv("https_proxy", "http://user:secret@proxy.example:3128", 1);
    setenv("no_proxy", no_proxy, 1);
    auto host = proxy_host(url);
    unsetenv("https_proxy");
    unsetenv("no_proxy");
    return host;
  };
  CHECK(proxy("", "https://hub.example/x") == "proxy.example");
  CHECK(proxy("", "http://hub.example/x").empty());
  CHECK(proxy("other.example,.Hub.example", "https://hub.example:8443/x").empty());
  CHECK(proxy("example", "https://hub.example").empty());
  CHECK(proxy("*", "https://hub.example").empty());
  CHECK(proxy("ub.example", "https://hub.example") == "proxy.example");
  CHECK(proxy("a.hub.example", "https://hub.example") == "proxy.example");
  CHECK(proxy("a.example", "https://localhost:8443").empty());
  CHECK(proxy("", "https://[::1]:8443/x").empty());
}

TEST_CASE("a redirect is resolved against where it came from") {
  CHECK(redirected("https://h/a/b", "/c").value_or("") == "https://h/c");
  CHECK(redirected("https://h/a/b", "c").value_or("") == "https://h/a/c");
  CHECK(redirected("https://h/a", "https://other/x").value_or("") == "https://other/x");
  CHECK_FALSE(redirected("https://h/a", "file:///etc/passwd"));
  CHECK_FALSE(redirected("https://h/a", "gopher://h/"));
}

}  // namespace efimd::get
