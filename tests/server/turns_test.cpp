// Connections that ask for much wait for each other; whatever else waits for the thread goes between them.
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <new>
#include <string>

#include "daemon/server/connection.h"

using efimd::service::Turns;
namespace asio = boost::asio;

TEST_CASE("between two turns, what arrived during the first is done") {
  asio::io_context io;
  Turns turns(io.get_executor());
  std::string order;
  // Each editor says something during a turn, and again when that is done.
  const std::function<void(char)> say = [&](char what) {
    asio::post(io, [&, what] {
      order += what;
      if (what < 'c') say(static_cast<char>(what + 1));
    });
  };
  for (const char turn : {'1', '2', '3', '4'})
    turns.take([&, turn] {
      order += turn;
      if (turn == '1') say('a');
    });
  io.run();
  // Without turns all four would come first.
  CHECK(order == "12a3b4c");
}

TEST_CASE("a turn that is asked for in a turn comes after those that wait") {
  asio::io_context io;
  Turns turns(io.get_executor());
  std::string order;
  turns.take([&] {
    order += '1';
    turns.take([&] { order += '4'; });
  });
  turns.take([&] { order += '2'; });
  turns.take([&] { order += '3'; });
  io.run();
  io.restart();
  turns.take([&] { order += '5'; });
  io.run();
  CHECK(order == "12345");
}

TEST_CASE("a turn that fails does not keep the others from theirs") {
  asio::io_context io;
  Turns turns(io.get_executor());
  std::string order;
  turns.take([] { throw std::bad_alloc(); });
  turns.take([&] { order += '2'; });
  CHECK_THROWS_AS(io.run(), std::bad_alloc);
  io.run();
  CHECK(order == "2");
}
