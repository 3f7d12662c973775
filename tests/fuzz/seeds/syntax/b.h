#pragma once
#include "a/b.h"
#include <vector>
#define MAX_N 10
#define BIG(a, b) do { something(a); something(b); something(a); something(b); something(a); } while (0)
namespace n { namespace m {
namespace { int hidden; }
template <class T> class V : public W<T> {
 public:
  V() : a_(1), b_{2} {}
  int size() const { return a_; }  // size
  friend class X;
  enum class K { kA, kB };
 private:
  int a_ = 0;
};
struct P { int x, y; };
typedef struct { int q; } Q;
using A = int;
extern const char* kNames[];
int f(int a, const char* b);
inline int g() { return 1; }
constexpr int kTable[] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24};
enum E { E1, E2 };
}}
extern "C" { void cfun(void); }
