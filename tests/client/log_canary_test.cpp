// What the bridge writes to its stderr holds no text: editors keep it in logs of their own.
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "daemon/client/bridge.h"
#include "lsp/json_rpc.h"
#include "tests/support/canary.h"
#include "tests/support/count.h"

using namespace efimd;
using service::UniqueFd;
using test::CanaryMessages;

namespace {

/// One end of a pair whose other end sent `bytes` and closed.
UniqueFd holding(const std::string& bytes) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const UniqueFd ours(ends[0]);
  REQUIRE(::send(ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
  return UniqueFd(ends[1]);
}

/// What a bridge logs between an editor and daemons that say this and leave.
std::string log_of(const std::string& editor, const std::string& daemon) {
  const UniqueFd in = holding(editor);
  int out[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, out) == 0);
  const UniqueFd read_end(out[0]), write_end(out[1]);
  std::string log;
  service::BridgeEnds ends;
  ends.editor_in = in.get();
  ends.editor_out = write_end.get();
  ends.connect = [&](service::Deadline) -> Result<UniqueFd> { return holding(daemon); };
  ends.log = [&](const std::string& line) { log += line + "\n"; };
  service::Bridge(std::move(ends)).run();
  return log;
}

}  // namespace

TEST_CASE("broken frames of an editor and of a daemon leave no text in the bridge's log") {
  CanaryMessages messages(3);
  std::string log;
  const int count = test::times("EFIMD_CANARY_MESSAGES", 10000) / 5;
  for (int i = 0; i < count; ++i) {
    const std::string editor = lsp::framed(CanaryMessages::initialize()) + messages.frame();
    log += log_of(editor, messages.frame());
  }
  CHECK(log.find("not LSP: message header") != std::string::npos);
  CHECK_FALSE(CanaryMessages::sings(log));
}

TEST_CASE("a daemon that refuses to initialize is logged by its error's number alone") {
  const std::string refusal =
      lsp::error_body(std::string("efimd-initialize-1"), lsp::ErrorCode::kInvalidParams,
                      "initialize: params must be an object, not QZQZQZ");
  const std::string log = log_of(lsp::framed(CanaryMessages::initialize()), lsp::framed(refusal));
  INFO(log);
  CHECK_FALSE(CanaryMessages::sings(log));
}
