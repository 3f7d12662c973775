"""Checkpoint folders as Hugging Face's tools write them: config.json, *.safetensors, a tokenizer. Architectures llama and qwen2."""
import json
import pathlib
import shutil

import torch

from training import safetensors
from training.errors import TrainingError
from training.files import json_object, whole_file
from training.model import Model, Shape

ARCHITECTURES = {"LlamaForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2"}
# The files that go along with the weights into the new folder.
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json",
                   "vocab.json", "merges.txt", "generation_config.json", "LICENSE")


def read_config(folder: pathlib.Path) -> dict:
    try:
        return json_object(folder / "config.json")
    except FileNotFoundError as error:
        raise TrainingError(f"{folder}: has no config.json; a Hugging Face checkpoint folder is wanted") from error


def shape_of(config: dict, where) -> Shape:
    names = config.get("architectures") or ["nothing"]
    if names[0] not in ARCHITECTURES:
        raise TrainingError(f"{where}: the architecture is {names[0]}; {' and '.join(ARCHITECTURES)} are supported")
    for key, plain in (("hidden_act", "silu"), ("rope_scaling", None), ("attention_bias", False), ("mlp_bias", False),
                       ("use_sliding_window", False)):
        if config.get(key, plain) != plain:
            raise TrainingError(f"{where}: {key} is {json.dumps(config[key])}, which is not supported")
    rope = config.get("rope_parameters") or {}  # where Transformers 5 writes the base
    if rope.get("rope_type", "default") != "default":
        raise TrainingError(f"{where}: rope_parameters are {json.dumps(rope)}, which is not supported")
    try:
        return Shape(vocabulary=config["vocab_size"], width=config["hidden_size"], layers=config["num_hidden_layers"],
                     heads=config["num_attention_heads"],
                     kv_heads=config.get("num_key_value_heads", config["num_attention_heads"]),
                     feed_forward=config["intermediate_size"], context=config["max_position_embeddings"],
                     rope_base=float(config.get("rope_theta", rope.get("rope_theta", 10000.0))), norm_epsilon=config["rms_norm_eps"],
                     tied=config.get("tie_word_embeddings", False), architecture=ARCHITECTURES[names[0]],
                     head_width=config.get("head_dim") or 0)
    except (KeyError, TypeError) as error:
        raise TrainingError(f"{where}: {error} is missing or wrong") from error


def read_weights(folder: pathlib.Path) -> dict:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise TrainingError(f"{folder}: has no *.safetensors file")
    weights = {}
    for file in files:
        weights.update(safetensors.read(file)[0])
    return weights


def load(folder: pathlib.Path):
    """(model in f32, the type that its weights had)."""
    config = read_config(folder)
    model = Model(shape_of(config, folder / "config.json"))
    weights = read_weights(folder)
    if model.shape.tied:
        weights.pop("lm_head.weight", None)
    weights = {name: weight for name, weight in weights.items() if not name.endswith("rotary_emb.inv_freq")}
    wanted = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    for name, size in wanted.items():
        if name not in weights:
            raise TrainingError(f"{folder}: has no tensor {name}")
        if tuple(weights[name].shape) != size:
            raise TrainingError(f"{folder}: {name} is {list(weights[name].shape)}; config.json says {list(size)}")
    if left := sorted(set(weights) - set(wanted)):
        raise TrainingError(f"{folder}: {left[0]} is no tensor of {model.shape.architecture}")
    kind = weights["model.embed_tokens.weight"].dtype
    model.load_state_dict({name: weight.float() for name, weight in weights.items()})
    return model, kind


def save(source: pathlib.Path, out: pathlib.Path, model: Model, kind: torch.dtype, facts: dict) -> None:
    """A folder like `source`, with the model's weights; efim.json says what was done to them."""
    out.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, out / name)
    shutil.copyfile(source / "config.json", out / "config.json")
    safetensors.write(out / "model.safetensors", {name: weight.to(kind) for name, weight in model.state_dict().items()},
                      {"format": "pt"})
    with whole_file(out / "efim.json", "w") as file:
        json.dump(facts, file, indent=1)
