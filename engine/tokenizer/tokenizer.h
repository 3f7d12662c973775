#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/types.h"

namespace efimd::engine {

class GgufFile;

/// The order in which a model reads the text around the hole.
enum class FimOrder {
  kNone,  ///< not trained for filling in
  kPsm,   ///< <PRE> before <SUF> after <MID>, which EFIM extends
  kSpm,   ///< <SUF> after <PRE> before, then <MID> if the model has one
};

/// How a model was trained to see the path of the edited file:
/// [FimTokens::repository NAME after_repository] [mark] before_path PATH after_path.
struct FimFiles {
  enum class Place { kNowhere, kBeforePrefix, kInsidePrefix };
  Place place = Place::kNowhere;  ///< of the path, after the mark; kNowhere: no form is known
  bool names_repository = false;
  bool shows_others =
      false;                ///< was trained with other files, path and text, before the edited one
  TokenId mark = kNoToken;  ///< before the path; kNoToken: none
  /// Was trained with the files of a repository one after another, and how they were told apart is not
  /// known. So paths are comments of their language. Where no other file is shown, none is said.
  bool paths_are_comments = false;
  std::string after_repository, before_path, after_path;
};

/// The special tokens that frame a prompt; kNoToken if the vocabulary has none.
struct FimTokens {
  FimOrder order = FimOrder::kNone;
  TokenId prefix = kNoToken;
  TokenId suffix = kNoToken;
  TokenId middle = kNoToken;
  TokenId repository = kNoToken;
  TokenId file_separator = kNoToken;
  std::string reason;  ///< how they were recognized, or why not; for people
  FimFiles files = {};
};

/// The user's configuration of FIM ([model.fim]); tokens by their text, empty ones as recognized.
struct FimOverride {
  std::optional<FimOrder> order = {};
  std::string prefix = {}, suffix = {}, middle = {}, repository = {}, file_separator = {};
  bool empty() const {
    return !order && prefix.empty() && suffix.empty() && middle.empty() && repository.empty() &&
           file_separator.empty();
  }
  bool operator==(const FimOverride&) const = default;
};

/// A text's place in the whole; sentencepiece models put their dummy space before kTextStart only.
enum class Fragment { kTextStart, kInside };

/// Text to token ids and back, for one vocabulary.
///
/// Thread: any, after construction (const calls only). Limits: encode() takes any valid UTF-8;
/// invalid bytes are encoded as U+FFFD. Text that spells a special token is encoded as plain text,
/// never as that token.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Reads the tokenizer.* keys of `file`. The strings that it keeps are copies.
  static Result<std::unique_ptr<Tokenizer>> from_gguf(const GgufFile& file,
                                                      const FimOverride& fim = {});

  virtual std::vector<TokenId> encode(std::string_view text, Fragment where) const = 0;

  /// The bytes that `token` adds to the text: empty for control tokens and ids outside the
  /// vocabulary. May be a part of a code point. Lives as long as the tokenizer.
  virtual std::string_view bytes(TokenId token) const = 0;

  /// The last place where both sides tokenize as they do together, at the start of the text's
  /// last line or earlier. `text` ends at the cursor; 0 always is such a place.
  virtual std::size_t line_cut(std::string_view text) const = 0;

  /// Whether no token reaches across the neighbouring bytes `left` and `right`. A text that ends
  /// with `left` and one that begins with `right` then tokenize together as they do apart (the
  /// right one as Fragment::kInside). Only pairs of ASCII bytes can be seams; the end of a word
  /// often is.
  virtual bool is_seam(char left, char right) const = 0;

  virtual int size() const = 0;
  /// Control, unused and unknown tokens: never part of a completion's text.
  virtual bool is_control(TokenId token) const = 0;
  /// End of text, end of turn, and every FIM or repository token: generation stops before it.
  virtual bool ends_generation(TokenId token) const = 0;
  /// The token that every prompt starts with; kNoToken if the model wants none.
  virtual TokenId bos() const = 0;
  virtual const FimTokens& fim() const = 0;

  /// All ids joined to text.
  std::string decode(const std::vector<TokenId>& tokens) const {
    std::string text;
    for (const TokenId token : tokens) text += bytes(token);
    return text;
  }
};

}  // namespace efimd::engine
