#include "tests/bench/completion/typist.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/bench/completion/samples.h"

using namespace efimd::bench;

TEST_CASE("a key is a code point; Enter brings the next line's indent") {
  CHECK(key_bytes("ab") == 1);
  CHECK(key_bytes("éb") == 2);
  CHECK(key_bytes("\n    x") == 5);
  CHECK(key_bytes("\r\n\tx") == 3);
  CHECK(key_bytes("\n  ") == 3);
  CHECK(keys_of("aé\n  b\n\nc") == 7);
  CHECK(keys_of("") == 0);
}

TEST_CASE("a suggestion is accepted up to the last border where it agrees") {
  CHECK(acceptable_bytes("return x;", "return x;\n}") == 9);
  CHECK(acceptable_bytes("return xs;", "return x;") == 7);
  CHECK(acceptable_bytes("return x;", "return xs;") == 7);
  CHECK(acceptable_bytes("name", "names") == 0);
  CHECK(acceptable_bytes("names", "name") == 0);
  CHECK(acceptable_bytes("foo(a, b)", "foo(a, c)") == 7);
  CHECK(acceptable_bytes("", "x") == 0);
}

TEST_CASE("less than three characters of agreement are typed") {
  CHECK(acceptable_bytes("();", "()") == 0);
  CHECK(acceptable_bytes("();", "();") == 3);
  CHECK(acceptable_bytes("éé", "éé") == 0);
}

TEST_CASE("the same seed types at the same times, with the mean that was measured of people") {
  Typist one(7), other(7);
  Samples pauses;
  for (int i = 0; i < 4000; ++i) {
    const double pause = one.pause_ms(false);
    CHECK(pause == other.pause_ms(false));
    pauses.add(pause);
  }
  CHECK(pauses.mean() == Approx(kKeyMsMean).epsilon(0.05));
  CHECK(one.pause_ms(true) > kLinePauseMs);
}

TEST_CASE("typing an exercise gives the file back") {
  const std::string text = "a\n\nb {\n  c\n\n  d\n}\ne\nf\ng\nh\n";
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Exercise exercise = exercise_of(text, 3, seed);
    CAPTURE(seed, exercise.typed);
    CHECK(exercise.open.substr(0, exercise.cursor) + exercise.typed +
              exercise.open.substr(exercise.cursor) ==
          text);
    REQUIRE_FALSE(exercise.typed.empty());
    CHECK(exercise.typed.front() > ' ');
  }
  for (const char* tiny : {"", "x", "\n", "  \n\t"}) {
    CAPTURE(tiny);
    const Exercise exercise = exercise_of(tiny, 5, 1);
    CHECK(exercise.open.size() + exercise.typed.size() == std::string(tiny).size());
  }
}

TEST_CASE("percentiles are values that were seen; none of nothing") {
  Samples samples;
  CHECK(samples.percentile(50) == 0);
  CHECK(samples.mean() == 0);
  for (const double value : {5.0, 1.0, 4.0, 2.0, 3.0}) samples.add(value);
  CHECK(samples.percentile(50) == 3);
  CHECK(samples.percentile(95) == 5);
  CHECK(samples.percentile(0) == 1);
  CHECK(samples.sum() == 15);
}

TEST_CASE("the median's interval is of ranks: one far value does not move it") {
  CHECK(median_interval({}).high == 0);
  CHECK(median_interval({7}).low == 7);
  CHECK(median_interval({3, 1, 2}).low == 1);
  CHECK(median_interval({3, 1, 2}).high == 3);
  std::vector<double> values;
  for (int value = 100; value > 0; --value) values.push_back(value);
  values.front() = 1e9;
  CHECK(median_interval(values).low == 40);
  CHECK(median_interval(values).high == 61);
}

TEST_CASE("a new file is typed from its beginning, and nothing of it is there") {
  const Exercise exercise = new_file_of("one\n  two\nthree\n", 2);
  CHECK(exercise.open.empty());
  CHECK(exercise.cursor == 0);
  CHECK(exercise.typed == "one\n  two");
  CHECK(new_file_of("one\n", 5).typed.starts_with("one"));
}
