// A bridge's daemon of another build, and one that leaves for another.
#include <catch2/catch.hpp>

#include "daemon/client/bridge_session.h"
#include "daemon/config/build.h"
#include "tests/client/bridge_harness.h"

using namespace efimd;
using namespace efimd::test;

namespace {

service::Build build_named(const char* id, std::int64_t installed_ns) {
  return {"1.0", id, installed_ns, "/usr/bin/efimd"};
}

/// What a daemon of `build` answers to the efim/version among `messages`.
void answer_version(Harness& h, const std::vector<Json>& messages, Json result) {
  for (const Json& message : messages)
    if (message.value("method", "") == "efim/version")
      return h.session.daemon_says(
          Json{{"jsonrpc", "2.0"}, {"id", message["id"]}, {"result", std::move(result)}}.dump());
  FAIL("the daemon was not asked for its version");
}

/// An editor of build "ours" (installed at 2000), connected to a daemon that answers so.
struct Upgraded : Harness {
  Upgraded() {
    session = BridgeSession(build_named("ours", 2000));
    session.editor_says(request(1, "initialize"));
    session.editor_says(notification("initialized"));
    session.editor_says(opening("int a;\n"));
  }
  std::vector<Json> meet(const service::Build& daemon) {
    answer_version(*this, connect(), {{"version", daemon.version}, {"build", to_json(daemon)}});
    return for_daemon();
  }
};

}  // namespace

TEST_CASE("BR-4 a daemon of an earlier build is asked to retire, and the next is sought at once") {
  Upgraded h;
  CHECK(methods(h.meet(build_named("earlier", 1000))) == Names{"efim/retire"});
  h.for_editor();
  h.session.disconnected();
  CHECK(h.session.wants_daemon());
  CHECK(h.meet(build_named("ours", 2000)).empty());
  CHECK(h.for_editor().empty());
}

TEST_CASE("BR-6 a daemon that leaves for another is sought at once, one that stops is not") {
  for (const bool another : {true, false}) {
    Harness h;
    h.start();
    h.session.daemon_says(notification("efim/leaving", {{"anotherComes", another}}));
    h.session.disconnected();
    CHECK(h.session.wants_daemon() == another);
  }
}

TEST_CASE("BR-4 neither the same build nor a later one is asked to retire") {
  for (const auto& daemon : {build_named("ours", 1000), build_named("later", 3000)}) {
    Upgraded h;
    CHECK(h.meet(daemon).empty());
    CHECK(methods(h.for_editor()) == Names{"(answer)"});
  }
}

TEST_CASE("BR-4 an earlier build that comes back serves, and the user is told once what to do") {
  Upgraded h;
  h.meet(build_named("earlier", 1000));
  h.for_editor();
  for (int i = 0; i < 3; ++i) {
    h.session.disconnected();
    CHECK(h.meet(build_named("earlier", 1000)).empty());
  }
  const auto said = h.for_editor();
  REQUIRE(methods(said) == Names{"window/showMessage"});
  CHECK(said[0]["params"]["message"].get<std::string>().find("autostart enable") !=
        std::string::npos);
}

TEST_CASE("BR-4 a daemon that tells no build is named to the user, with the remedy") {
  Upgraded h;
  answer_version(h, h.connect(), {{"version", "0.0.9"}, {"pid", 7}});
  CHECK(h.for_daemon().empty());
  const auto said = h.for_editor();
  REQUIRE(methods(said) == Names{"(answer)", "window/showMessage"});
  CHECK(said[1]["params"]["message"].get<std::string>().find("efimd stop") != std::string::npos);
}
