#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/syntax/grammar.h"

namespace efimd::syntax {

/// What a text brings in from elsewhere, as its language writes it.
struct Import {
  enum class Kind {
    kQuoted,  ///< #include "a.h", TypeScript's "./a", Go's "example.org/m/a"
    kSystem,  ///< #include <a.h>
    kModule,  ///< Python's a.b or ..b, Rust's crate::a::b, Java's a.b.C
    kChild,   ///< Rust's mod a;
  };
  Kind kind = Kind::kModule;
  /// A name of what is imported, and what the text calls it.
  struct Renamed {
    std::string name, as;
    bool operator==(const Renamed&) const = default;
  };
  std::string what;
  std::vector<std::string> names = {};  ///< what it names of that; empty: all of it
  std::vector<Renamed> renamed = {};    ///< of these, such as `a as b`
  bool operator==(const Import&) const = default;
};

/// More are left out.
inline constexpr std::size_t kImportsMax = 256;

/// A text's imports in their order, also those inside conditions; empty without a grammar.
std::vector<Import> imports_of(Grammar grammar, std::string_view text);

}  // namespace efimd::syntax
