#include "engine/tokenizer/byte_bpe.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/utf8.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/byte_letters.h"

namespace efimd::engine {
namespace {

/// Bytes that every source text has. Others may have no token (StarCoder's vocabulary has none for
/// the planes of Unicode that are empty) and then add none.
bool must_have_token(std::size_t byte) {
  return (byte >= 0x20 && byte <= 0x7E) || byte == '\n' || byte == '\t';
}

constexpr std::size_t kMergesMax = std::size_t{1} << 21;  ///< the largest known have 2^19

std::string_view as_text(const std::string& bytes) { return bytes; }

Result<const std::vector<std::string_view>*> find_merges(const GgufFile& file) {
  const auto* const lines = file.strings("tokenizer.ggml.merges");
  if (lines == nullptr)
    return fail(Fault::kBadInput, file.name() + ": has no tokenizer.ggml.merges",
                "use a model file with its whole tokenizer");
  if (lines->size() > kMergesMax)
    return fail(Fault::kBadInput,
                file.name() + ": tokenizer.ggml.merges has " + std::to_string(lines->size()) +
                    " merges, more than " + std::to_string(kMergesMax),
                "download the file again");
  return lines;
}

}  // namespace

/// A piece while it is merged: symbols as a linked list over arrays, and the merges that are still
/// possible. Kept between pieces for its memory.
struct ByteBpe::Work {
  static constexpr std::int32_t kNone = -1;
  struct Symbol {
    TokenId token;  ///< kNoToken once merged into its left neighbour
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    std::int32_t rank;
    std::int32_t left;  ///< symbol; of equal ranks the leftmost merges first
    std::int32_t right;
    TokenId left_token;  ///< outdated when the symbols no longer hold these
    TokenId right_token;
    TokenId merged;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };

  std::vector<Symbol> symbols;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;

  Symbol& at(std::int32_t index) { return symbols[static_cast<std::size_t>(index)]; }

  void offer(const MergeTable& merges, std::int32_t left, std::int32_t right) {
    if (left == kNone || right == kNone) return;
    const TokenId left_token = at(left).token;
    const TokenId right_token = at(right).token;
    const auto merge = merges.find(left_token, right_token);
    if (merge.rank == MergeTable::kNoRank) return;
    candidates.push({merge.rank, left, right, left_token, right_token, merge.merged});
  }

  /// Merges the right symbol into the left; false when the candidate is outdated.
  bool apply(const Candidate& merge) {
    Symbol& left = at(merge.left);
    Symbol& right = at(merge.right);
    if (left.token != merge.left_token || right.token != merge.right_token) return false;
    if (left.next != merge.right) return false;
    left.token = merge.merged;
    left.next = right.next;
    right.token = kNoToken;
    if (left.next != kNone) at(left.next).previous = merge.left;
    return true;
  }
};

ByteBpe::ByteBpe(SpecialTokens special, TokenId bos, PreTokenizer splitter, std::size_t merges)
    : TableTokenizer(std::move(special), bos), splitter_(std::move(splitter)), merges_(merges) {
  byte_tokens_.fill(kNoToken);
}

Result<std::unique_ptr<Tokenizer>> ByteBpe::open(const GgufFile& file, const Vocabulary& vocabulary,
                                                 SpecialTokens special) {
  Result<PreTokenizer> splitter =
      PreTokenizer::for_rule(file.string("tokenizer.ggml.pre").value_or("default"));
  if (!splitter) {
    splitter.error().what.insert(0, file.name() + ": tokenizer.ggml.pre: ");
    return tl::unexpected<Error>(std::move(splitter.error()));
  }
  const auto merges = find_merges(file);
  if (!merges) return tl::unexpected<Error>(merges.error());
  const TokenId bos = find_bos(file, vocabulary, false);
  std::unique_ptr<ByteBpe> bpe(
      new ByteBpe(std::move(special), bos, std::move(*splitter), (*merges)->size()));
  if (auto read = bpe->read_bytes(vocabulary); !read)
    return tl::unexpected<Error>(std::move(read.error()));
  if (auto read = bpe->read_merges(**merges, vocabulary); !read)
    return tl::unexpected<Error>(std::move(read.error()));
  bpe->find_newline_glue();
  return bpe;
}

Result<void> ByteBpe::read_bytes(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    const bool whole = vocabulary.kind(id) == TokenKind::kUserDefined;
    // A user-defined token's text is not in the alphabet of bytes.
    const auto bytes = whole ? std::nullopt : bytes_of_letters(text);
    add_bytes(bytes ? as_text(*bytes) : text);
    if (bytes && bytes->size() == 1 && vocabulary.kind(id) == TokenKind::kNormal)
      byte_tokens_[static_cast<unsigned char>(bytes->front())] = id;
    if (whole && !text.empty() && !is_control(id) && !looks_special(text)) {
      wholes_.push_back({std::string(text), id});
      whole_begins_[static_cast<unsigned char>(text.front())] = true;
    }
  }
  SeamTable seams = SeamTable::word_ends();
  for (const Whole& whole : wholes_) seams.join(whole.text);
  set_seams(seams);
  std::stable_sort(wholes_.begin(), wholes_.end(),
                   [](const Whole& a, const Whole& b) { return a.text.size() > b.text.size(); });
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte)
    if (must_have_token(byte) && byte_tokens_[byte] == kNoToken)
      return fail(Fault::kBadInput,
                  vocabulary.file_name + ": tokenizer.ggml.tokens has no token for byte " +
                      std::to_string(byte),
                  "download the file again or use another model");
  return {};
}

Result<void> ByteBpe::read_merges(const std::vector<std::string_view>& lines,
                                  const Vocabulary& vocabulary) {
  std::string joined;
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    const std::string_view line = lines[rank];
    const std::size_t space = std::min(line.find(' ', 1), line.size());
    const std::string_view left = line.substr(0, space);
    const std::string_view right = line.substr(std::min(space + 1, line.size()));
    joined.assign(left).append(right);
    const TokenId merged = vocabulary.find(joined);
    const TokenId left_id = vocabulary.find(left);
    const TokenId right_id = vocabulary.find(right);
    if (merged == kNoToken || left_id == kNoToken || right_id == kNoToken)
      return fail(Fault::kBadInput,
                  vocabulary.file_name + ": tokenizer.ggml.merges: merge " + std::to_string(rank) +
                      ", \"" + utf8::sanitized(line.substr(0, 80)) + "\", has no token",
                  "download the file again or use another model");
    merges_.add(left_id, right_id, {static_cast<std::int32_t>(rank), merged});
  }
  return {};
}

std::vector<TokenId> ByteBpe::encode(std::string_view text, Fragment) const {
  std::vector<TokenId> tokens;
  tokens.reserve(text.size() / 3 + 1);
  if (utf8::valid_prefix(text) == text.size()) {
    encode_valid(text, tokens);
  } else {
    encode_valid(utf8::sanitized(text), tokens);
  }
  return tokens;
}

void ByteBpe::encode_valid(std::string_view text, std::vector<TokenId>& tokens) const {
  Work work;
  const auto encode_plain = [&](std::string_view plain) {
    splitter_.split(plain, [&](std::string_view piece) { merge_piece(piece, work, tokens); });
  };
  if (wholes_.empty()) return encode_plain(text);
  std::size_t plain_begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Whole* const whole = whole_at(text.substr(at));
    if (whole == nullptr) {
      ++at;
      continue;
    }
    encode_plain(text.substr(plain_begin, at - plain_begin));
    tokens.push_back(whole->token);
    plain_begin = at += whole->text.size();
  }
  encode_plain(text.substr(plain_begin));
}

const ByteBpe::Whole* ByteBpe::whole_at(std::string_view text) const {
  if (!whole_begins_[static_cast<unsigned char>(text.front())]) return nullptr;
  const auto found = std::find_if(wholes_.begin(), wholes_.end(),
                                  [&](const Whole& whole) { return text.starts_with(whole.text); });
  return found == wholes_.end() ? nullptr : &*found;
}

void ByteBpe::merge_piece(std::string_view piece, Work& work, std::vector<TokenId>& tokens) const {
  work.symbols.clear();
  const auto count = static_cast<std::int32_t>(piece.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(piece[static_cast<std::size_t>(i)]);
    work.symbols.push_back({byte_tokens_[byte], i - 1, i + 1 < count ? i + 1 : Work::kNone});
  }
  for (std::int32_t i = 0; i + 1 < count; ++i) work.offer(merges_, i, i + 1);
  while (!work.candidates.empty()) {
    const Work::Candidate merge = work.candidates.top();
    work.candidates.pop();
    if (!work.apply(merge)) continue;
    work.offer(merges_, work.at(merge.left).previous, merge.left);
    work.offer(merges_, merge.left, work.at(merge.left).next);
  }
  for (const Work::Symbol& symbol : work.symbols)
    if (symbol.token != kNoToken) tokens.push_back(symbol.token);
}

}  // namespace efimd::engine
