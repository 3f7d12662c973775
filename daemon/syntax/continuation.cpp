#include "daemon/syntax/continuation.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "daemon/syntax/tree.h"

namespace efimd::syntax {

namespace {

/// From a block's opener to the statement that has the block.
constexpr int kOwnerLevelsMax = 3;

/// A token's row and column, in bytes.
struct Position {
  std::size_t row = 0, column = 0;
};

/// Reads a text to its first error that stands at `from` or later. A tree does not say where that is,
/// because error nodes hold good tokens, too, and a text that ends early is one large error. A parser
/// says it in its log: "process ..., row:R, col:C" before it looks at the token after a place,
/// "detect_error" where one of its readings ends, and "resume" where all of them have ended. Its log
/// is a fifth of the time, so it begins at `from`.
class FirstError {
 public:
  FirstError(std::string_view text, std::size_t from, std::uint64_t time_us)
      : text_(text), from_(from), timed_(text, time_us) {}

  /// False if the time is over.
  bool read(Grammar grammar) {
    const ParserPtr parser = parser_of(grammar);
    if (parser == nullptr) return false;
    parser_ = parser.get();
    const auto read = [](void* self, std::uint32_t at, TSPoint, std::uint32_t* size) {
      return static_cast<FirstError*>(self)->piece(at, *size);
    };
    const std::unique_ptr<TSTree, DeleteTree> tree(
        ts_parser_parse(parser_, nullptr, {this, read, TSInputEncodingUTF8}));
    return tree != nullptr && (error_ || !timed_.is_over());
  }

  /// Where the first token begins that does not belong there; the text's size if all do.
  std::size_t byte() const {
    if (!error_) return text_.size();
    std::size_t at = 0;
    for (std::size_t row = 0; row < error_->row && at < text_.size(); ++row)
      at = std::min(text_.find('\n', at), text_.size() - 1) + 1;
    return std::min(text_.find_first_not_of(" \t\r\n", at + error_->column), text_.size());
  }

 private:
  const char* piece(std::size_t at, std::uint32_t& size) {
    const char* const read = timed_.piece(at, size);
    if (!listens_ && at + size >= from_) {
      listens_ = true;
      ts_parser_set_logger(parser_, {this, &FirstError::hear});
    }
    return read;
  }

  static void hear(void* self, TSLogType type, const char* message) {
    if (type == TSLogTypeParse) static_cast<FirstError*>(self)->hear(message);
  }

  void hear(std::string_view message) {
    // Once the time is over the parser reads blanks, and what they break is no error of the text.
    if (error_ || timed_.is_over()) return;
    if (message.starts_with("process ")) {
      at_ = {number_after(message, "row:"), number_after(message, "col:")};
    } else if (message == "detect_error") {
      ended_ = at_;
    } else if (message.starts_with("resume ")) {
      error_ = ended_;
      // The rest does not matter, and recovering takes long.
      timed_.end_now();
    }
  }

  static std::size_t number_after(std::string_view message, std::string_view name) {
    const std::size_t at = message.find(name);
    std::size_t number = 0;
    if (at != std::string_view::npos)
      std::from_chars(message.data() + at + name.size(), message.data() + message.size(), number);
    return number;
  }

  const std::string_view text_;
  const std::size_t from_;
  TimedText timed_;
  TSParser* parser_ = nullptr;
  bool listens_ = false;
  Position at_, ended_;
  std::optional<Position> error_;
};

}  // namespace

std::string_view window_before(std::string_view before) {
  if (before.size() <= kWindowBytesMax) return before;
  before.remove_prefix(before.size() - kWindowBytesMax);
  std::size_t begin = before.size(), least = std::string_view::npos;
  for (std::size_t end = before.find('\n'); end < kWindowBytesMax / 2;
       end = before.find('\n', end + 1)) {
    const std::size_t word = before.find_first_not_of(" \t", end + 1);
    if (word == std::string_view::npos) break;
    const char c = before[word];
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '@';
    if (!is_word || word - end >= least) continue;
    least = word - end;
    begin = end + 1;
  }
  return before.substr(begin);
}

std::optional<std::size_t> accepted_bytes(Grammar grammar, std::string_view window,
                                          std::string_view text, std::uint64_t time_us) {
  if (grammar == Grammar::kNone || window.size() + text.size() > kReadBytesMax) return std::nullopt;
  const std::string whole = std::string(window).append(text);
  FirstError error(whole, window.size() - std::min(window.size(), kSoundBytes), time_us);
  if (!error.read(grammar) || error.byte() < window.size()) return std::nullopt;
  return error.byte() - window.size();
}

std::optional<std::size_t> block_begin(Grammar grammar, std::string_view text,
                                       std::string_view closers, std::uint64_t time_us) {
  if (grammar == Grammar::kNone || text.empty() || text.size() + closers.size() > kReadBytesMax)
    return std::nullopt;
  std::string whole(text);
  if (grammar == Grammar::kPython) whole += " pass";
  whole += closers;
  const std::optional<Tree> tree = Tree::of(grammar, whole, time_us);
  if (!tree) return std::nullopt;
  const auto opener = static_cast<std::uint32_t>(text.size() - 1);
  TSNode node = ts_node_descendant_for_byte_range(tree->root(), opener, opener + 1);
  for (int level = 0; level < kOwnerLevelsMax && !ts_node_is_null(node); ++level) {
    for (const std::string_view field : {"body", "consequence"}) {
      const TSNode block = field_of(node, field);
      if (ts_node_is_null(block) || ts_node_start_byte(block) < opener) continue;
      if (ts_node_has_error(node)) return std::nullopt;
      return ts_node_start_byte(node);
    }
    node = ts_node_parent(node);
  }
  return std::nullopt;
}

}  // namespace efimd::syntax
