#include "net/get/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

namespace efimd::get {

struct ContentHash::Context {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  Context() = default;
  ~Context() { EVP_MD_CTX_free(context); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

ContentHash::ContentHash(Kind kind, std::uint64_t bytes) : context_(std::make_unique<Context>()) {
  EVP_DigestInit_ex(context_->context, kind == Kind::kSha256 ? EVP_sha256() : EVP_sha1(), nullptr);
  if (kind == Kind::kGitBlob) {
    const std::string header = fmt::format("blob {}", bytes);
    add({header.data(), header.size() + 1});  // with its zero
  }
}

ContentHash::~ContentHash() = default;
ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;

void ContentHash::add(std::span<const char> piece) {
  EVP_DigestUpdate(context_->context, piece.data(), piece.size());
}

std::string ContentHash::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context_->context, bytes.data(), &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace efimd::get
