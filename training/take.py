"""Takes a GGUF file back into training: a llama model of F32, F16 or Q8_0 with a sentencepiece BPE vocabulary, as export writes them.

OUT is a folder: checkpoint.safetensors for `train --from`, and tokenizer.model for `samples`.
"""
import argparse
import pathlib
import struct

from training import gguf_reader, vocabulary
from training.errors import TrainingError
from training.export import TENSORS, TOP
from training.files import whole_file


def halves(rows, heads: int):
    """Rotary pairs from neighbours to halves of a head: export's adjacent(), backwards."""
    return rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def weights_of(tensors: dict, shape) -> dict:
    import torch

    top = {name: ours for ours, name in TOP.items()}
    inner = {name: ours for ours, name in TENSORS.items()}
    weights = {}
    for name, rows in tensors.items():
        if name in top:
            weights[top[name]] = torch.from_numpy(rows)
            continue
        _, layer, part, last = name.split(".")
        if part in ("attn_q", "attn_k"):
            rows = halves(rows, shape.heads if part == "attn_q" else shape.kv_heads)
        weights[f"model.layers.{layer}.{inner[part]}.{last}"] = torch.from_numpy(rows.copy())
    return weights


def shape_of(metadata: dict, tensors: dict):
    from training.model import Shape

    key = lambda name: metadata[f"llama.{name}"]
    return Shape(vocabulary=len(metadata["tokenizer.ggml.tokens"]), width=key("embedding_length"), layers=key("block_count"),
                 heads=key("attention.head_count"), kv_heads=key("attention.head_count_kv"),
                 feed_forward=key("feed_forward_length"), context=key("context_length"), rope_base=metadata.get("llama.rope.freq_base", 10000.0),
                 norm_epsilon=key("attention.layer_norm_rms_epsilon"), tied="output.weight" not in tensors,
                 head_width=metadata.get("llama.rope.dimension_count", 0))


# Sentencepiece's model is a protocol buffer: a field is a tag (its number * 8 + its wire type) and a value.
def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def number_field(field: int, number: int) -> bytes:
    return varint(field << 3) + varint(number)


def bytes_field(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def sentencepiece_model(metadata: dict) -> bytes:
    """ModelProto: pieces (1: text 1, score 2, type 3), trainer (2: BPE, byte fallback), normalizer (3: nothing is changed)."""
    out = b""
    for text, score, kind in zip(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.scores"],
                                 metadata["tokenizer.ggml.token_type"]):
        out += bytes_field(1, bytes_field(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + number_field(3, kind))
    size, has_bytes = len(metadata["tokenizer.ggml.tokens"]), vocabulary.BYTE in metadata["tokenizer.ggml.token_type"]
    out += bytes_field(2, number_field(3, 2) + number_field(4, size) + number_field(35, has_bytes))
    return out + bytes_field(3, bytes_field(1, b"identity") + number_field(3, metadata.get("tokenizer.ggml.add_space_prefix", True))
                             + number_field(4, 0) + number_field(5, 1))


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training take", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args(words)

    from training import checkpoint

    metadata, tensors = gguf_reader.read(options.gguf)
    kinds = metadata.get("general.architecture"), metadata.get("tokenizer.ggml.model")
    if kinds != ("llama", "llama"):
        raise TrainingError(f"{options.gguf}: architecture {kinds[0]}, tokenizer {kinds[1]}; llama with a sentencepiece vocabulary "
                            "is what can be taken")
    try:
        shape = shape_of(metadata, tensors)
        model = checkpoint.model_of({"shape": vars(shape), "weights": weights_of(tensors, shape)}, options.gguf)
        words_model = sentencepiece_model(metadata)
    except (KeyError, ValueError) as error:
        raise TrainingError(f"{options.gguf}: {error} is missing or wrong") from error
    with whole_file(options.out / "tokenizer.model") as file:
        file.write(words_model)
    vocabulary.SentencepieceVocabulary(options.out / "tokenizer.model")  # it has what samples need, or says what not
    checkpoint.save(options.out / checkpoint.FILE, model, [], {
        "plan": {"optimizer": "none"}, "step": 0, "losses": [], "validations": [], "seconds": 0.0,
        "fragment_share": float(metadata.get("efim.fragment_trained", False))})
    print(f"{options.out}: {model.parameter_count() / 1e6:.1f} M parameters and {shape.vocabulary} pieces of "
          f"{metadata.get('general.name', options.gguf.name)}")
    return 0
