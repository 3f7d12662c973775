"""Vocabularies: text to token ids and back, and the tokens that frame prompts.

Two kinds: the sentencepiece models of tokenizer.py (and of Llama), and tokenizer.json with byte-level BPE, as qwen2 and newer llamas
have it. Neither reads special tokens out of a text: what spells one is encoded as text, as efimd does.
"""
import dataclasses
import functools
import pathlib
import re

from training.errors import TrainingError
from training.files import json_object

# Of our own vocabularies, after <unk>, <s> and </s>; the texts are StarCoder's, which every tool
# recognizes.
SYMBOLS = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<repo_name>", "<file_sep>", "<eot>")

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # GGUF's token types


@dataclasses.dataclass(frozen=True)
class Frame:
    """One maker's spelling of prefix, suffix, middle, and the mark before a file's path (or None)."""

    prefix: str
    suffix: str
    middle: str
    file: object = None
    repository: object = None


FRAMES = (
    Frame("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>", "<repo_name>"),
    Frame("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|repo_name|>"),
    Frame("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    Frame("▁<PRE>", "▁<SUF>", "▁<MID>"),
)
ENDS = ("<eot>", "<|endoftext|>", "▁<EOT>", "<｜end▁of▁sentence｜>", "</s>")


class Vocabulary:
    """The part that both kinds have. `tokens`: the text of each id as GGUF wants it; `types`: GGUF's; encode() and
    decode()."""

    def __init__(self, path, tokens: list, types: list):
        self.path, self.tokens, self.types = path, tokens, types
        self.size = len(tokens)
        self._ids = {text: token for token, text in reversed(list(enumerate(tokens)))}
        frame = next((frame for frame in FRAMES if frame.prefix in self._ids), None)
        if frame is None or any(text not in self._ids for text in (frame.suffix, frame.middle)):
            raise TrainingError(f"{path}: the vocabulary has no tokens for filling in the middle (looked for "
                                f"{', '.join(frame.prefix for frame in FRAMES)}); take a model that was trained with them")
        self.prefix, self.suffix, self.middle = (self._ids[text] for text in (frame.prefix, frame.suffix, frame.middle))
        self.file, self.repository = self._ids.get(frame.file), self._ids.get(frame.repository)
        ends = [self._ids[text] for text in ENDS if text in self._ids]
        if not ends:
            raise TrainingError(f"{path}: the vocabulary has no token that ends a text (looked for {', '.join(ENDS)})")
        self.end = ends[0]

    def find(self, text: str):
        return self._ids.get(text)


class SentencepieceVocabulary(Vocabulary):
    def __init__(self, path: pathlib.Path, added=()):
        """`added`: (id, text) of tokens after the model's own."""
        import sentencepiece

        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
        except FileNotFoundError as error:
            raise TrainingError(f"{path}: is missing; make it first: python3 -m training tokenizer") from error
        except RuntimeError as error:
            raise TrainingError(f"{path}: is no sentencepiece model") from error
        pieces = range(self._pieces.get_piece_size())
        tokens, types = [self._pieces.id_to_piece(token) for token in pieces], [self._type(token) for token in pieces]
        self.scores = [self._pieces.get_score(token) for token in pieces]
        for token, text in sorted(added):
            if token == len(tokens):
                tokens.append(text)
                types.append(CONTROL)
                self.scores.append(0.0)
        super().__init__(path, tokens, types)
        # Llama's puts a space before every text, but parts of a text must get none. So they are
        # encoded after a newline, which is a token of its own and is removed again.
        self.adds_space = self._pieces.encode("a", out_type=str)[0].startswith("▁")
        self._in_front = self._pieces.encode("\n") if self.adds_space else []
        self._mark = [token for token in (self.find(f"<0x{byte:02X}>") for byte in "▁".encode()) if token is not None]

    def _type(self, token: int) -> int:
        for kind, is_kind in ((UNKNOWN, self._pieces.is_unknown), (CONTROL, self._pieces.is_control), (BYTE, self._pieces.is_byte),
                              (UNUSED, self._pieces.is_unused)):
            if is_kind(token):
                return kind
        return NORMAL

    def encode(self, text: str) -> list:
        """A text's own U+2581, which sentencepiece takes for a space, is spelled in bytes, as efimd does."""
        if "▁" in text and self._mark:
            first, *others = map(self._encode, text.split("▁"))
            return first + [token for other in others for token in self._mark + other]
        return self._encode(text)

    def _encode(self, text: str) -> list:
        if not self.adds_space:
            return self._pieces.encode(text)
        tokens = self._pieces.encode("\n" + text)
        if tokens[:len(self._in_front)] != self._in_front:
            raise TrainingError(f"{self.path}: joins newlines to what follows, and puts a space before texts; its parts of a text "
                                "cannot be told apart")
        return tokens[len(self._in_front):]

    def decode(self, tokens: list) -> str:
        return self._pieces.decode(tokens)


def looks_special(text: str) -> bool:
    """What efimd takes for no text, though a file may call it user-defined: `looks_special` in engine/tokenizer/vocabulary.cpp."""
    return bool(re.fullmatch(r"<\|.+\|>|<｜.+｜>|\[PAD.+\]|<pad>|<mask>", text, re.DOTALL))


def byte_letters() -> dict:
    """Byte -> the character that stands for it in byte-level BPE (GPT-2's table): visible ones for themselves, others from U+0100."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in visible)
    return {**{byte: chr(byte) for byte in visible}, **{byte: chr(0x100 + at) for at, byte in enumerate(others)}}


# Splits of text into words, by the regular expressions of tokenizer.json, and GGUF's names for them.
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SPLITS = {QWEN2: "qwen2", LLAMA3: "llama-bpe", GPT2: "gpt-2"}


class ByteBpeVocabulary(Vocabulary):
    """tokenizer.json. Its normalizer, NFC if there is one, is ignored, because GGUF has none."""

    def __init__(self, path: pathlib.Path):
        tokenizer = json_object(path)
        model = tokenizer["model"]
        if model["type"] != "BPE":
            raise TrainingError(f"{path}: its model is {model['type']}; byte-level BPE and sentencepiece are supported")
        words, merges = model["vocab"], model["merges"]
        pattern = split_pattern(tokenizer.get("pre_tokenizer"), path)
        self.pre, self._split = SPLITS[pattern], compiled(pattern)
        tokens, types = {token: text for text, token in words.items()}, {}
        for added in tokenizer.get("added_tokens", []):
            tokens[added["id"]] = added["content"]
            types[added["id"]] = CONTROL if added["special"] else USER_DEFINED
        size = max(tokens) + 1
        self._whole_words = {text for text, token in words.items() if token not in types} if self.pre == "llama-bpe" else ()
        self._user_defined = {text: token for token, text in tokens.items() if types.get(token) == USER_DEFINED and not looks_special(text)}
        longest_first = sorted(map(re.escape, self._user_defined), key=len, reverse=True)
        self._parts = re.compile(f"({'|'.join(longest_first)})") if longest_first else None
        self.merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]
        self._ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(self.merges)}
        self._letters = byte_letters()
        self._bytes = {letter: byte for byte, letter in self._letters.items()}
        self._words = words
        self._encode_word = functools.lru_cache(1 << 16)(self._merge)
        super().__init__(path, [tokens.get(token, f"<|unused_{token}|>") for token in range(size)],
                         [types.get(token, NORMAL if token in tokens else UNUSED) for token in range(size)])

    def encode(self, text: str) -> list:
        """As efimd does: user-defined tokens first, then word by word."""
        out = []
        for part in self._parts.split(text) if self._parts else [text]:
            if part in self._user_defined:
                out.append(self._user_defined[part])
            else:
                out += [token for word in self._split.findall(part) for token in self._encode_word(word)]
        return out

    def _merge(self, word: str) -> list:
        symbols = [self._letters[byte] for byte in word.encode()]
        whole = "".join(symbols)
        if whole in self._whole_words:  # Llama 3's habit: even if the merges lead elsewhere
            return [self._words[whole]]
        while len(symbols) > 1:
            ranks = [self._ranks.get(pair, len(self._ranks)) for pair in zip(symbols, symbols[1:])]
            best = min(ranks)
            if best == len(self._ranks):
                break
            at = ranks.index(best)
            symbols[at:at + 2] = [symbols[at] + symbols[at + 1]]
        return [self._words[symbol] for symbol in symbols if symbol in self._words]  # a byte may have no token

    def decode(self, tokens: list) -> str:
        out = b""
        for token in tokens:
            text = self.tokens[token]
            out += text.encode() if self.types[token] == USER_DEFINED else bytes(self._bytes[letter] for letter in text)
        return out.decode("utf-8", "replace")


def split_pattern(pre_tokenizer, path) -> str:
    """The one regular expression that splits words, of those known here."""
    steps = (pre_tokenizer or {}).get("pretokenizers", [pre_tokenizer] if pre_tokenizer else [])
    patterns = [step["pattern"]["Regex"] for step in steps if step.get("type") == "Split" and "Regex" in step.get("pattern", {})]
    if not patterns and any(step.get("type") == "ByteLevel" and step.get("use_regex", True) for step in steps):
        patterns = [GPT2]
    if len(patterns) != 1 or patterns[0] not in SPLITS:
        raise TrainingError(f"{path}: splits words in a way that is not known here (known: those of {', '.join(SPLITS.values())})")
    return patterns[0]


def compiled(pattern: str):
    try:
        import regex
    except ImportError as error:
        raise TrainingError("tokenizer.json needs the Python package regex; scripts/deps --training installs it") from error
    return regex.compile(pattern)


def open_vocabulary(path: pathlib.Path) -> Vocabulary:
    """Of a sentencepiece model, or of a Hugging Face checkpoint folder."""
    if not path.is_dir():
        return SentencepieceVocabulary(path)
    if (path / "tokenizer.model").exists():
        added = path / "added_tokens.json"
        tokens = json_object(added, missing={})
        return SentencepieceVocabulary(path / "tokenizer.model", [(token, text) for text, token in tokens.items()])
    if (path / "tokenizer.json").exists():
        try:
            return ByteBpeVocabulary(path / "tokenizer.json")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TrainingError(f"{path / 'tokenizer.json'}: is no tokenizer.json, or a damaged one: {error!r}; get it again") from error
    raise TrainingError(f"{path}: has neither tokenizer.model nor tokenizer.json")
