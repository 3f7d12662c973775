"""Writes a model as GGUF: a training run's checkpoint.safetensors, or a checkpoint folder that finetune wrote.

The metadata has the facts that efimd needs: FIM tokens by their ids, and `efim.fragment_trained` where the model was trained on
fragments, so that words broken at the cursor need no healing; --heal writes that they do, for a model that `evaluate` finds better
with it. With --type q4_k the embedding, which is mostly the output as well, is kept in q8_0.
"""
import argparse
import pathlib

from training import gguf, vocabulary
from training.errors import TrainingError
from training.files import json_object, whole_file

TENSORS = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
       "lm_head.weight": "output.weight"}
BEGINS = ("<s>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>")


def gguf_name(name: str) -> str:
    if name in TOP:
        return TOP[name]
    _, _, layer, rest = name.split(".", 3)
    inner, last = rest.rsplit(".", 1)
    return f"blk.{layer}.{TENSORS[inner]}.{last}"


def adjacent(rows, heads: int):
    """Rotary pairs from halves of a head, as Hugging Face has them, to neighbours, as GGUF's llama has them."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def tensors_of(model, kind: str) -> list:
    import numpy

    from training.quantize import encoded

    shape, out = model.shape, []
    for name, weight in model.state_dict().items():
        rows = weight.detach().float().cpu().numpy()
        if shape.architecture == "llama" and name.endswith("q_proj.weight"):
            rows = adjacent(rows, shape.heads)
        if shape.architecture == "llama" and name.endswith("k_proj.weight"):
            rows = adjacent(rows, shape.kv_heads)
        if rows.ndim == 1:
            out.append((gguf_name(name), rows.shape, gguf.F32, rows.astype("<f4").tobytes()))
            continue
        finer = "q8_0" if kind == "q4_k" and name in TOP else kind
        out.append((gguf_name(name), rows.shape, *encoded(numpy.ascontiguousarray(rows), finer)))
    return out


def shape_metadata(shape, name: str, kind: str) -> list:
    own = shape.architecture
    return [
        ("general.architecture", gguf.STRING, own), ("general.name", gguf.STRING, name),
        ("general.file_type", gguf.UINT32, gguf.FILE_TYPES[kind]), ("general.quantization_version", gguf.UINT32, 2),
        (f"{own}.block_count", gguf.UINT32, shape.layers), (f"{own}.context_length", gguf.UINT32, shape.context),
        (f"{own}.embedding_length", gguf.UINT32, shape.width), (f"{own}.feed_forward_length", gguf.UINT32, shape.feed_forward),
        (f"{own}.attention.head_count", gguf.UINT32, shape.heads), (f"{own}.attention.head_count_kv", gguf.UINT32, shape.kv_heads),
        (f"{own}.attention.key_length", gguf.UINT32, shape.head), (f"{own}.attention.value_length", gguf.UINT32, shape.head),
        (f"{own}.rope.freq_base", gguf.FLOAT32, shape.rope_base), (f"{own}.rope.dimension_count", gguf.UINT32, shape.head),
        (f"{own}.attention.layer_norm_rms_epsilon", gguf.FLOAT32, shape.norm_epsilon),
        (f"{own}.vocab_size", gguf.UINT32, shape.vocabulary),
    ]


def tokenizer_metadata(words, size: int) -> list:
    """`size` of the model's rows for tokens; some have more than their vocabulary."""
    missing = range(words.size, size)
    tokens = [*words.tokens, *(f"<|unused_{token}|>" for token in missing)]
    types = [*words.types, *(vocabulary.UNUSED for _ in missing)]
    out = [("tokenizer.ggml.tokens", gguf.ARRAY, (gguf.STRING, tokens)),
           ("tokenizer.ggml.token_type", gguf.ARRAY, (gguf.INT32, types))]
    if isinstance(words, vocabulary.ByteBpeVocabulary):
        out += [("tokenizer.ggml.model", gguf.STRING, "gpt2"), ("tokenizer.ggml.pre", gguf.STRING, words.pre),
                ("tokenizer.ggml.merges", gguf.ARRAY, (gguf.STRING, words.merges))]
    else:
        scores = [*words.scores, *(-1e4 for _ in missing)]
        out += [("tokenizer.ggml.model", gguf.STRING, "llama"), ("tokenizer.ggml.pre", gguf.STRING, "default"),
                ("tokenizer.ggml.scores", gguf.ARRAY, (gguf.FLOAT32, scores)), ("tokenizer.ggml.unknown_token_id", gguf.UINT32, 0),
                ("tokenizer.ggml.add_space_prefix", gguf.BOOL, words.adds_space)]
    out += [(f"tokenizer.ggml.{key}_token_id", gguf.UINT32, token) for key, token in (
        ("eos", words.end), ("eot", words.end), ("fim_pre", words.prefix), ("fim_suf", words.suffix), ("fim_mid", words.middle),
        ("fim_rep", words.repository), ("fim_sep", words.file)) if token is not None]
    return out


def bos_metadata(words, wanted: bool) -> list:
    bos = next((words.find(text) for text in BEGINS if words.find(text) is not None), None)
    out = [] if bos is None else [("tokenizer.ggml.bos_token_id", gguf.UINT32, bos)]
    return [*out, ("tokenizer.ggml.add_bos_token", gguf.BOOL, wanted and bos is not None),
            ("tokenizer.ggml.add_eos_token", gguf.BOOL, False)]


def source_of(path: pathlib.Path, tokenizer):
    """(model, vocabulary, whether trained on fragments, whether prompts begin with BOS)."""
    from training import checkpoint, hugging_face

    if path.is_dir() and (path / "config.json").exists():
        facts, settings = (json_object(path / name, missing={}) for name in ("efim.json", "tokenizer_config.json"))
        model, _ = hugging_face.load(path)
        # Llama's slow tokenizer, whose file says nothing, begins every text with BOS.
        bos = settings.get("add_bos_token", (path / "tokenizer.model").exists())
        return model, vocabulary.open_vocabulary(tokenizer or path), facts.get("fragment_share", 0) > 0, bool(bos)
    if tokenizer is None:
        raise TrainingError("--tokenizer is wanted: the sentencepiece model that the samples were made with")
    path = path / checkpoint.FILE if path.is_dir() else path
    state = checkpoint.load(path)
    return checkpoint.model_of(state, path), vocabulary.open_vocabulary(tokenizer), state["fragment_share"] > 0, False


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training export", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True,
                        help="checkpoint.safetensors, a run's folder, or a Hugging Face checkpoint folder")
    parser.add_argument("--tokenizer", type=pathlib.Path, help="the sentencepiece model; a checkpoint folder brings its own")
    parser.add_argument("--type", choices=tuple(gguf.FILE_TYPES), default="q8_0")
    parser.add_argument("--heal", action="store_true", help="say that the model needs healing, though it was trained on fragments")
    parser.add_argument("--files", action="store_true",
                        help="say that the model was trained with the declarations of other files in front; efimd then shows it some")
    parser.add_argument("--name", default="efim", help="what efimd and others call it")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args(words)
    model, tokens, fragments, bos = source_of(options.model, options.tokenizer)
    if tokens.size > model.shape.vocabulary:
        raise TrainingError(f"{tokens.path}: has {tokens.size} tokens, the model {model.shape.vocabulary}; it is another model's")
    metadata = [*shape_metadata(model.shape, options.name, options.type), *tokenizer_metadata(tokens, model.shape.vocabulary),
                *bos_metadata(tokens, bos), ("efim.fragment_trained", gguf.BOOL, fragments and not options.heal),
                ("efim.repository_trained", gguf.BOOL, options.files)]
    with whole_file(options.out) as file:
        gguf.write(file, metadata, tensors_of(model, options.type))
    print(f"{options.out}: {model.parameter_count() / 1e6:.1f} M parameters, {options.out.stat().st_size / 1e6:.1f} MB, "
          f"{'trained on fragments' if fragments else 'not trained on fragments'}{', to be healed' if options.heal else ''}")
    return 0
