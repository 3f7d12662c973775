#include "daemon/completion/in_flight.h"

#include <catch2/catch.hpp>
#include <thread>

#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;
using test::Harness;
using test::says;

TEST_CASE("a request is in flight until it is answered, stopped or refused") {
  Harness harness(says("f();"));
  const std::shared_ptr<InFlight> requests = harness.service->in_flight();
  CHECK_FALSE(requests->any());
  harness.set("int a = ^\n");
  harness.script->append_gate.close();
  auto first = harness.submit();
  harness.script->append_gate.wait_until_reached();
  CHECK(requests->any());
  auto second = harness.submit();
  harness.script->append_gate.open();
  CHECK(first.get().superseded);
  CHECK(second.get().item);
  CHECK_FALSE(requests->any());
}

TEST_CASE("work that makes way goes on when the last request is answered") {
  InFlight requests;
  requests.began();
  requests.began();
  std::thread waiting([&] { requests.wait_for_none(std::chrono::hours(1)); });
  requests.ended();
  CHECK(requests.any());
  requests.ended();
  waiting.join();
  CHECK_FALSE(requests.any());
}

TEST_CASE("work that makes way ends even if there is always a request") {
  const auto requests = std::make_shared<InFlight>();
  MakingWay way(requests);
  way.between_pieces();
  CHECK(way.waited() == MakingWay::Clock::duration::zero());
  requests->began();
  // It would take 100 s if it waited at each piece.
  for (int piece = 0; piece < 1000; ++piece) way.between_pieces();
  CHECK(way.waited() >= MakingWay::kWaitMin);
  CHECK(way.waited() < std::chrono::seconds(50));
}
