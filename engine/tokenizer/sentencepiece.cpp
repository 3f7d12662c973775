#include "engine/tokenizer/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "engine/model/gguf.h"

namespace efimd::engine {
namespace {

constexpr std::string_view kSpaceMark = "▁";
constexpr std::ptrdiff_t kByteTokens = 256;
/// Added to the worst score for a character without a token, as sentencepiece does.
constexpr float kUnknownPenalty = -10;

/// Longer tokens are never found in a text: no vocabulary has one, and trying all ways to split it
/// would take its length squared.
constexpr std::size_t kWordBytesMax = 128;

constexpr std::size_t kCodePoints = 0x110000;
constexpr std::size_t kPairsMax = std::size_t{1} << 21;  ///< more pairs than this do not merge

/// A token's text as it stands in a document.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool mark = text.substr(at).starts_with(kSpaceMark);
    out += mark ? ' ' : text[at];
    at += mark ? kSpaceMark.size() : 1;
  }
  return out;
}

Result<std::vector<float>> read_scores(const GgufFile& file, std::size_t tokens) {
  const auto* const scores = file.reals("tokenizer.ggml.scores");
  const auto finite = [](double score) { return std::isfinite(static_cast<float>(score)); };
  if (scores != nullptr && scores->size() == tokens &&
      std::all_of(scores->begin(), scores->end(), finite))
    return std::vector<float>(scores->begin(), scores->end());
  return fail(Fault::kBadInput,
              file.name() + ": tokenizer.ggml.scores does not have one number for each of " +
                  std::to_string(tokens) + " tokens",
              "download the file again or use another model");
}

Result<void> check(const GgufFile& file, const Vocabulary& vocabulary) {
  const auto bytes = std::count(vocabulary.kinds.begin(), vocabulary.kinds.end(), TokenKind::kByte);
  if (bytes != 0 && bytes != kByteTokens)
    return fail(Fault::kBadInput,
                file.name() + ": tokenizer.ggml.token_type has " + std::to_string(bytes) +
                    " byte tokens; none or 256 make sense",
                "download the file again or use another model");
  if (vocabulary.find(kSpaceMark) == kNoToken)
    return fail(Fault::kBadInput, file.name() + ": tokenizer.ggml.tokens has no token for a space",
                "download the file again or use another model");
  // Both change the text: what would come back is not what was typed.
  if (file.integer("tokenizer.ggml.remove_extra_whitespaces").value_or(0) != 0)
    return fail(Fault::kUnsupported,
                file.name() +
                    ": tokenizer.ggml.remove_extra_whitespaces is set, which would remove "
                    "code's indentation",
                "use a model that was made for code");
  const auto* const normalization = file.integers("tokenizer.ggml.precompiled_charsmap");
  if (normalization != nullptr && !normalization->empty())
    return fail(Fault::kUnsupported,
                file.name() +
                    ": tokenizer.ggml.precompiled_charsmap asks for characters to be "
                    "replaced, which would change the code",
                "use a model that was made for code");
  return {};
}

/// The rank of each token's score: the best is 0, equal ones are equal.
std::vector<std::int32_t> ranks_of(const std::vector<float>& scores) {
  std::vector<float> sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<std::int32_t> ranks;
  for (const float score : scores)
    ranks.push_back(static_cast<std::int32_t>(
        std::lower_bound(sorted.begin(), sorted.end(), score, std::greater<>()) - sorted.begin()));
  return ranks;
}

}  // namespace

struct Sentencepiece::Scratch {
  SymbolMerger merger;
  UnigramSplitter splitter;
  std::vector<TokenId> tokens;  ///< of the whole text
};

Sentencepiece::Sentencepiece(SpecialTokens special, TokenId bos, Kind kind)
    : TableTokenizer(std::move(special), bos), kind_(kind) {
  byte_tokens_.fill(kNoToken);
}

Result<std::unique_ptr<Tokenizer>> Sentencepiece::open(const GgufFile& file,
                                                       const Vocabulary& vocabulary,
                                                       SpecialTokens special, Kind kind) {
  if (auto good = check(file, vocabulary); !good)
    return tl::unexpected<Error>(std::move(good.error()));
  Result<std::vector<float>> scores = read_scores(file, vocabulary.texts.size());
  if (!scores) return tl::unexpected<Error>(std::move(scores.error()));
  const TokenId bos = find_bos(file, vocabulary, kind == Kind::kBpe);
  std::unique_ptr<Sentencepiece> tokenizer(new Sentencepiece(std::move(special), bos, kind));
  tokenizer->scores_ = std::move(*scores);
  tokenizer->dummy_space_ = file.integer("tokenizer.ggml.add_space_prefix").value_or(1) != 0;
  tokenizer->read_tokens(vocabulary);
  TokenIndex index = tokenizer->index_of(vocabulary);
  MergeTable merges = kind == Kind::kBpe ? tokenizer->merges_of(vocabulary, index) : MergeTable(0);
  tokenizer->words_ = BpeWords(std::move(index), std::move(merges));
  tokenizer->unknown_score_ =
      *std::min_element(tokenizer->scores_.begin(), tokenizer->scores_.end()) + kUnknownPenalty;
  tokenizer->find_seams(vocabulary);
  tokenizer->find_newline_glue();
  return tokenizer;
}

/// Each token's bytes, and the tokens that are not spelled from characters.
void Sentencepiece::read_tokens(const Vocabulary& vocabulary) {
  std::vector<WholeTokens::Whole> wholes;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    const TokenKind kind = vocabulary.kind(id);
    const int byte = kind == TokenKind::kByte ? byte_of_name(text) : -1;
    add_bytes(byte < 0 ? plain(text) : std::string(1, static_cast<char>(byte)));
    if (byte >= 0) byte_tokens_[static_cast<std::size_t>(byte)] = id;
    if (kind == TokenKind::kUnknown && unknown_ == kNoToken) unknown_ = id;
    if (kind == TokenKind::kUserDefined && !is_control(id) && !looks_special(text) && !text.empty())
      wholes.push_back({plain(text), id});
  }
  wholes_ = WholeTokens(std::move(wholes));
}

bool Sentencepiece::is_word(const Vocabulary& vocabulary, TokenId id) const {
  return vocabulary.kind(id) == TokenKind::kNormal && !is_control(id) &&
         bytes(id).size() <= kWordBytesMax;
}

/// Tokens by text. BPE merges characters whether they are tokens or not; those that are none get
/// ids after the vocabulary's.
TokenIndex Sentencepiece::index_of(const Vocabulary& vocabulary) const {
  std::vector<std::string_view> words;
  for (TokenId id = 0; id < vocabulary.size(); ++id)
    words.push_back(is_word(vocabulary, id) ? bytes(id) : std::string_view());
  std::set<std::string_view> characters;
  std::vector<bool> seen(kCodePoints);
  for (const std::string_view word : words)
    for (std::size_t at = 0, length = 0; at < word.size() && kind_ == Kind::kBpe; at += length) {
      const utf8::CodePoint character = utf8::decode(word, at);
      length = static_cast<std::size_t>(character.length);
      if (!seen[character.value]) characters.insert(word.substr(at, length));
      seen[character.value] = true;
    }
  for (const std::string_view word : words) characters.erase(word);
  words.insert(words.end(), characters.begin(), characters.end());
  TokenIndex index(words.size());
  for (std::size_t id = 0; id < words.size(); ++id) index.add(words[id], static_cast<TokenId>(id));
  return index;
}

/// The merges: each token's ways to be two others.
MergeTable Sentencepiece::merges_of(const Vocabulary& vocabulary, const TokenIndex& index) const {
  struct Pair {
    TokenId left, right, merged;
  };
  std::vector<Pair> pairs;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = bytes(id);
    if (!is_word(vocabulary, id) || index.find(text) != id) continue;
    for (std::size_t at = 1; at < text.size(); ++at) {
      if (utf8::is_continuation(text[at])) continue;
      const TokenId left = index.find(text.substr(0, at));
      const TokenId right = left == kNoToken ? kNoToken : index.find(text.substr(at));
      if (right != kNoToken && pairs.size() < kPairsMax) pairs.push_back({left, right, id});
    }
  }
  MergeTable merges(pairs.size());
  const std::vector<std::int32_t> ranks = ranks_of(scores_);
  for (const Pair& pair : pairs)
    merges.add(pair.left, pair.right, {ranks[static_cast<std::size_t>(pair.merged)], pair.merged});
  return merges;
}

/// Tokens reach only across pairs that stand inside one of them; unknown characters join.
void Sentencepiece::find_seams(const Vocabulary& vocabulary) {
  SeamTable seams = SeamTable::all();
  for (TokenId id = 0; id < vocabulary.size(); ++id) seams.join(bytes(id));
  seams.join("  ");  // whether a text has anything else decides about the dummy space
  if (byte_tokens_[0] == kNoToken)
    for (int byte = 0; byte < 128; ++byte) {
      const char character = static_cast<char>(byte);
      if (words_.index().find(std::string_view(&character, 1)) == kNoToken)
        seams.join_all(character);
    }
  set_seams(seams);
}

std::vector<TokenId> Sentencepiece::encode(std::string_view text, Fragment where) const {
  Scratch scratch;
  if (text.empty()) return {};
  scratch.tokens.reserve(text.size() / 3 + 1);
  std::string changed;
  const bool valid = utf8::valid_prefix(text) == text.size();
  // Unigram models put it before a text's first character that is no space.
  const bool dummy_space =
      where == Fragment::kTextStart && dummy_space_ &&
      (kind_ == Kind::kBpe || text.find_first_not_of(' ') != std::string_view::npos);
  if (!valid || dummy_space) {
    changed = valid ? std::string(text) : utf8::sanitized(text);
    if (dummy_space) changed.insert(0, 1, ' ');
    text = changed;
  }
  wholes_.split(
      text, [&](std::string_view plain) { encode_plain(plain, scratch); },
      [&](TokenId whole) { scratch.tokens.push_back(whole); });
  return std::move(scratch.tokens);
}

void Sentencepiece::encode_plain(std::string_view text, Scratch& scratch) const {
  std::size_t begin = 0;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (!is_seam(text[at - 1], text[at])) continue;
    encode_word(text.substr(begin, at - begin), scratch);
    begin = at;
  }
  if (begin < text.size()) encode_word(text.substr(begin), scratch);
}

void Sentencepiece::encode_word(std::string_view word, Scratch& scratch) const {
  using Symbols = std::vector<SymbolMerger::Symbol>;
  const auto spell = [&](std::string_view text, Symbols& symbols) {
    if (kind_ == Kind::kUnigram)
      return scratch.splitter.split(text, words_.index(), scores_, unknown_score_, symbols);
    for (std::size_t at = 0; at < text.size();) {
      const auto length = static_cast<std::size_t>(utf8::decode(text, at).length);
      symbols.push_back(
          {words_.index().find(text.substr(at, length)), static_cast<std::uint32_t>(at)});
      at += length;
    }
  };
  const Symbols& symbols = words_.merge(word, scratch.merger, spell);
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (contains(symbols[i].token)) {
      scratch.tokens.push_back(symbols[i].token);
      continue;
    }
    const std::size_t end = i + 1 < symbols.size() ? symbols[i + 1].begin : word.size();
    encode_unknown(word.substr(symbols[i].begin, end - symbols[i].begin), scratch.tokens);
  }
}

void Sentencepiece::encode_unknown(std::string_view character, std::vector<TokenId>& tokens) const {
  if (byte_tokens_[0] != kNoToken) {
    for (const char byte : character) {
      const TokenId token = byte_tokens_[static_cast<unsigned char>(byte)];
      if (token != kNoToken) tokens.push_back(token);
    }
  } else if (unknown_ != kNoToken && (tokens.empty() || tokens.back() != unknown_)) {
    tokens.push_back(unknown_);  // one for all that stand together
  }
}

}  // namespace efimd::engine
