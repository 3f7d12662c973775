#pragma once

#include <cmath>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

/// As much of Catch2 as the devices' tests use, for machines without the package (scripts/gpu).
namespace catch_stand_in {

struct Test {
  const char* name;
  void (*run)();
};
inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}
struct Register {
  Register(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

inline std::vector<std::string> notes;
inline int failures = 0;
struct Stop {};

struct Note {
  explicit Note(std::string text) { notes.push_back(std::move(text)); }
  Note(const Note&) = delete;
  ~Note() { notes.pop_back(); }
};

inline void failed(const char* file, int line, const std::string& what) {
  ++failures;
  std::cout << file << ":" << line << ": FAILED: " << what << "\n";
  for (const std::string& note : notes) std::cout << "    " << note << "\n";
}

struct Approx {
  explicit Approx(double value) : value(value) {}
  Approx& epsilon(double share) {
    within = share * std::fabs(value);
    return *this;
  }
  Approx& margin(double distance) {
    within = std::max(within, distance);
    return *this;
  }
  friend bool operator==(double a, const Approx& b) { return std::fabs(a - b.value) <= b.within; }
  double value;
  double within = std::fabs(value) * 1e-5;
};

}  // namespace catch_stand_in

using catch_stand_in::Approx;

#define CATCH_JOIN_(a, b) a##b
#define CATCH_JOIN(a, b) CATCH_JOIN_(a, b)
#define CATCH_TEXT(message) (std::ostringstream{} << message).str()
// Counted, for several files may be compiled as one.
#define TEST_CASE(name) TEST_CASE_(name, __COUNTER__)
#define TEST_CASE_(name, number) \
  TEST_CASE_AS(name, CATCH_JOIN(test_, number), CATCH_JOIN(register_, number))
#define TEST_CASE_AS(name, function, registered)                    \
  static void function();                                           \
  static const catch_stand_in::Register registered(name, function); \
  static void function()
#define INFO(message) const catch_stand_in::Note CATCH_JOIN(note_, __LINE__)(CATCH_TEXT(message))
#define WARN(message) std::cout << "note: " << CATCH_TEXT(message) << "\n"
#define FAIL_CHECK(message) catch_stand_in::failed(__FILE__, __LINE__, CATCH_TEXT(message))
#define SUCCEED() static_cast<void>(0)
// A condition may have commas, as Catch2's may.
#define CHECK(...)                                                                                 \
  do {                                                                                             \
    if (!static_cast<bool>(__VA_ARGS__)) catch_stand_in::failed(__FILE__, __LINE__, #__VA_ARGS__); \
  } while (false)
#define REQUIRE(...)                                            \
  do {                                                          \
    if (!static_cast<bool>(__VA_ARGS__)) {                      \
      catch_stand_in::failed(__FILE__, __LINE__, #__VA_ARGS__); \
      throw catch_stand_in::Stop{};                             \
    }                                                           \
  } while (false)
