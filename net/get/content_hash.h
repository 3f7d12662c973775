#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace efimd::get {

/// The hub's name of a file's content. For files in LFS or Xet it is SHA-256 (64 hexadecimal
/// digits). For others it is git's object id (40 digits: SHA-1 of "blob SIZE\0" and the content).
///
/// Thread: one.  By OpenSSL.
class ContentHash {
 public:
  enum class Kind { kSha256, kGitBlob };
  /// `bytes`: of the whole content; only git's id needs it.
  ContentHash(Kind kind, std::uint64_t bytes);
  ~ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;

  void add(std::span<const char> piece);
  /// Hexadecimal; ends the hash.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace efimd::get
