"""Trains the vocabulary: sentencepiece BPE with byte fallback, no dummy space before the text, single digits, runs of spaces as
pieces,
and the tokens that frame prompts as control symbols.

A newline is a byte token, alone: text can be cut after any of them and tokenizes as before (A-2), which EFIM's anchors need.
"""
import argparse
import io
import pathlib
import random

from training import corpus
from training.errors import TrainingError
from training.files import whole_file
from training.vocabulary import SYMBOLS, SentencepieceVocabulary

SAMPLE_BYTES = 24_000_000  # of the training split; more changes few pieces and takes minutes
PIECE_CHARACTERS_MAX = 16
SEED = 1


def lines_of(corpus_folder: pathlib.Path):
    """Lines without their ends, of files chosen evenly over the packages."""
    files = corpus.Files(corpus_folder, "train")
    chosen = sorted(range(len(files)), key=lambda number: (files.packages[number], files.paths[number]))
    random.Random(SEED).shuffle(chosen)
    left = SAMPLE_BYTES
    for number in chosen:
        left -= files.sizes[number]
        if left < 0:
            return
        yield from (line for line in files[number]["text"].split("\n") if line)


def train(corpus_folder: pathlib.Path, size: int, out: pathlib.Path) -> None:
    import sentencepiece

    model = io.BytesIO()
    lines = list(lines_of(corpus_folder))  # here, for an error inside of the trainer's loop would be lost
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, model_type="bpe", vocab_size=size,
            byte_fallback=True, add_dummy_prefix=False, split_digits=True, allow_whitespace_only_pieces=True,
            remove_extra_whitespaces=False, normalization_rule_name="identity", character_coverage=0.9995,
            control_symbols=list(SYMBOLS), max_sentencepiece_length=PIECE_CHARACTERS_MAX, max_sentence_length=1 << 16,
            minloglevel=2)
    except RuntimeError as error:  # of a corpus that is too small for the size, mostly
        raise TrainingError(f"sentencepiece cannot make {size} pieces of {corpus_folder}: {str(error).strip()[-300:]}") from error
    with whole_file(out) as file:
        file.write(model.getvalue())


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training tokenizer", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--size", type=int, default=4096, help="pieces; a small model spends most of its time on them")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file for the sentencepiece model")
    options = parser.parse_args(words)
    train(options.corpus, options.size, options.out)
    vocabulary = SentencepieceVocabulary(options.out)
    texts = [record["text"] for _, record in zip(range(50), corpus.records(options.corpus, "train"))]
    tokens = sum(len(vocabulary.encode(text)) for text in texts)
    print(f"{options.out}: {vocabulary.size} pieces, {sum(map(len, texts)) / tokens:.2f} characters a token")
    return 0
