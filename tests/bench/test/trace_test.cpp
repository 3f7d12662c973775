#include "tests/bench/completion/trace.h"

#include <catch2/catch.hpp>
#include <string>

using namespace efimd::bench;

namespace {

const std::string kOpen = R"({"op":"open","path":"a","text":"aé\nb"})"
                          "\n";

std::string refusal(const std::string& lines) {
  const auto trace = parse_trace(lines);
  REQUIRE_FALSE(trace);
  return trace.error().message();
}

std::string edit(const std::string& members) {
  return R"({"op":"edit","path":"a","kind":"type","ask":true,)" + members + "}\n";
}

}  // namespace

TEST_CASE("a trace is read line by line, its positions count code points") {
  const auto trace =
      parse_trace(kOpen + "\n" + edit(R"("pos":2,"del":1,"ins":"ü","cursor":3)") +
                  R"({"op":"move","path":"a","cursor":0,"kind":"jump","ask":false})");
  REQUIRE(trace);
  REQUIRE(trace->size() == 3);
  CHECK((*trace)[1].line == 3);
  TraceDocuments documents;
  REQUIRE(documents.apply((*trace)[0]));
  const auto place = documents.apply((*trace)[1]);
  REQUIRE(place);
  REQUIRE(*place);
  CHECK((*place)->snapshot->bytes() == "aéüb");
  CHECK((*place)->cursor == 5);
  CHECK_FALSE(*documents.apply((*trace)[2]));
}

TEST_CASE("a bad line of a trace is named with what is wrong in it") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "line 2"},
      {"[]", "line 2 of the trace: not a JSON object"},
      {R"({"op":"paint","path":"a"})", "line 2 of the trace: \"op\" must be open, edit or move"},
      {R"({"op":"open","path":"b"})", "line 2 of the trace: \"text\" must be a string"},
      {R"({"op":"open","path":"a","text":""})", "line 2 of the trace: the path was opened before"},
      {R"({"op":"move","path":"b","cursor":0,"kind":"k","ask":true})", "the path was not opened"},
      {R"({"op":"move","path":"a","cursor":5,"kind":"k","ask":true})", "\"cursor\" is past"},
      {R"({"op":"move","path":"a","cursor":-1,"kind":"k","ask":true})", "a number from 0"},
      {R"({"op":"move","path":"a","cursor":1,"kind":"k","ask":1})",
       "\"ask\" must be true or false"},
      {R"({"op":"move","path":"a","cursor":1,"kind":"a b","ask":true})", "visible characters"},
      {edit(R"("pos":3,"del":2,"ins":"","cursor":0)"), "reach past the text's end"},
      {edit(R"("pos":5,"del":0,"ins":"","cursor":0)"), "reach past the text's end"},
      {edit(R"("pos":0,"del":18446744073709551615,"ins":"","cursor":0)"), "reach past"},
      {edit(R"("pos":0,"del":4,"ins":"x","cursor":2)"), "\"cursor\" is past"}};
  for (const auto& [line, message] : cases) {
    CAPTURE(line);
    const std::string said = refusal(kOpen + line);
    CHECK(said.find("line 2") != std::string::npos);
    CHECK_THAT(said, Catch::Contains(message));
  }
}

TEST_CASE("a trace that asks for nothing, or has too many kinds, is refused") {
  CHECK_THAT(refusal(""), Catch::Contains("asks for no completion"));
  CHECK_THAT(refusal(kOpen), Catch::Contains("asks for no completion"));
  std::string lines = kOpen;
  for (std::size_t kind = 0; kind <= kTraceKindsMax; ++kind)
    lines += R"({"op":"move","path":"a","cursor":0,"ask":true,"kind":"k)" + std::to_string(kind) +
             "\"}\n";
  CHECK_THAT(refusal(lines), Catch::Contains("different kinds"));
}
