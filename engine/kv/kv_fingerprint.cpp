#include "engine/kv/kv_fingerprint.h"

#include <algorithm>
#include <vector>

#include "engine/backend/backend.h"

namespace efimd::engine {
namespace {

constexpr int kFirstTokens = 12;
/// The last token stands after this many pages, which all are page 0.
constexpr int kPagesBefore = 17;

TokenId token_at(int index, int vocabulary) {
  return static_cast<TokenId>((index + 1) * 7919 % vocabulary);
}

/// Evaluates `count` tokens at `position`.
Result<void> evaluate(Backend& backend, int layers, int vocabulary, const StepSequence& part) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < part.count; ++i) tokens.push_back(token_at(part.position + i, vocabulary));
  const auto done =
      forward(backend, layers, {.tokens = tokens, .sequences = {&part, 1}, .logits_rows = {}});
  if (!done) return tl::unexpected(done.error());
  return {};
}

}  // namespace

Result<Digest> kv_fingerprint(Backend& backend, int layers, int vocabulary) {
  std::vector<std::byte> bytes(backend.page_bytes());
  std::vector<PageIndex> pages(kPagesBefore, 0);
  pages.push_back(std::min(1, backend.page_count() - 1));
  for (const PageIndex page : {PageIndex{0}, pages.back()})
    if (auto cleared = backend.write_page(page, bytes); !cleared)
      return tl::unexpected(cleared.error());
  const int first = std::min(kFirstTokens, backend.step_tokens_max());
  for (const StepSequence& part :
       {StepSequence{.count = first, .page_table = pages},
        StepSequence{.count = 1, .position = kPagesBefore * kPageTokens, .page_table = pages}})
    if (auto done = evaluate(backend, layers, vocabulary, part); !done)
      return tl::unexpected(done.error());
  Digest digest;
  for (const PageIndex page : {PageIndex{0}, pages.back()}) {
    if (auto read = backend.read_page(page, bytes); !read) return tl::unexpected(read.error());
    digest = digest_of(bytes, digest);
  }
  return digest;
}

}  // namespace efimd::engine
