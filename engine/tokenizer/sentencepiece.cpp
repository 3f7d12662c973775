#include "engine/tokenizer/sentencepiece.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/sentencepiece_model.h"

namespace efimd::engine {
namespace {

constexpr std::string_view kSpaceMark = "▁";

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

}  // namespace

Sentencepiece::Sentencepiece(SpecialTokens special, TokenId bos)
    : TableTokenizer(std::move(special), bos) {
  byte_tokens_.fill(kNoToken);
}

Result<std::unique_ptr<Tokenizer>> Sentencepiece::open(const GgufFile& file,
                                                       const Vocabulary& vocabulary,
                                                       SpecialTokens special) {
  const Result<std::string> model = sentencepiece_model(file, vocabulary, special);
  if (!model) return tl::unexpected<Error>(model.error());
  const TokenId bos = find_bos(file, vocabulary, true);
  std::unique_ptr<Sentencepiece> tokenizer(new Sentencepiece(std::move(special), bos));
  const auto loaded = tokenizer->processor_.LoadFromSerializedProto(*model);
  if (!loaded.ok())
    return fail(Fault::kBadInput,
                file.name() + ": tokenizer.ggml.tokens: sentencepiece refuses it: " +
                    utf8::sanitized(loaded.ToString()),
                "download the file again or use another model");
  tokenizer->dummy_space_ = file.integer("tokenizer.ggml.add_space_prefix").value_or(1) != 0;
  tokenizer->read_bytes(vocabulary);
  tokenizer->find_newline_glue();
  return tokenizer;
}

void Sentencepiece::read_bytes(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    const int byte = vocabulary.kind(id) == TokenKind::kByte ? byte_of_name(text) : -1;
    if (byte < 0) {
      add_bytes(plain(text));
      continue;
    }
    add_bytes(std::string(1, static_cast<char>(byte)));
    byte_tokens_[static_cast<std::size_t>(byte)] = id;
  }
  // Merges run over the whole text, but only to what is a piece. Without byte tokens the library
  // joins unknown characters, whatever they are.
  if (byte_tokens_[0] == kNoToken) return;
  SeamTable seams = SeamTable::all();
  for (TokenId id = 0; id < vocabulary.size(); ++id) seams.join(plain(vocabulary.text(id)));
  set_seams(seams);
}

std::vector<TokenId> Sentencepiece::encode(std::string_view text, Fragment where) const {
  std::vector<TokenId> tokens;
  if (text.empty()) return tokens;
  std::string input = utf8::sanitized(text);
  if (where == Fragment::kTextStart && dummy_space_) input.insert(0, 1, ' ');
  const bool has_bytes = byte_tokens_[0] != kNoToken;
  std::string_view rest = input;
  while (has_bytes) {
    const std::size_t mark = rest.find(kSpaceMark);
    if (mark == std::string_view::npos) break;
    encode_valid(rest.substr(0, mark), tokens);
    for (const char c : kSpaceMark) tokens.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
    rest.remove_prefix(mark + kSpaceMark.size());
  }
  encode_valid(rest, tokens);
  return tokens;
}

void Sentencepiece::encode_valid(std::string_view text, std::vector<TokenId>& tokens) const {
  std::vector<int> ids;
  if (text.empty() || !processor_.Encode(text, &ids).ok()) return;
  // An unknown token that was added for the library lies behind the vocabulary.
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(tokens),
               [&](int id) { return contains(id); });
}

}  // namespace efimd::engine
