"""A training run's state on disk. The file is replaced as a whole, so that a run that dies at any moment, also of a full disk,
goes on from its last one. In the safetensors format (PyTorch's own aborts the process where a disk is full, and runs code that a
foreign file brings): weights as "weights/NAME", an optimizer's tensors as "optimizers/NUMBER/WEIGHT/NAME", all else as JSON."""
import dataclasses
import json
import pathlib

from training import safetensors
from training.errors import TrainingError
from training.model import Model, Shape

FILE = "checkpoint.safetensors"
FORMAT = "efim-training 1"


def save(path: pathlib.Path, model: Model, optimizers: list, facts: dict) -> None:
    facts = {"shape": dataclasses.asdict(model.shape), **facts}
    tensors = {f"weights/{name}": weight for name, weight in trained_weights(model).items()}
    for number, state in enumerate(optimizers):
        for weight, values in state.items():
            tensors.update({f"optimizers/{number}/{weight}/{name}": value.float() for name, value in values.items()})
    try:
        safetensors.write(path, tensors, {"format": FORMAT, "facts": json.dumps(facts)})
    except OSError as error:
        raise TrainingError(f"{path}: cannot be written: {error.strerror}; free some space and start the same command again, it goes "
                            "on from the last checkpoint") from error


def save_weights(path: pathlib.Path, model: Model, facts: dict) -> None:
    """The weights alone, in bf16: a sixth of a checkpoint, for export and for `train --from`."""
    import torch

    tensors = {f"weights/{name}": weight.to(torch.bfloat16) for name, weight in trained_weights(model).items()}
    facts = {"shape": dataclasses.asdict(model.shape), **facts}
    safetensors.write(path, tensors, {"format": FORMAT, "facts": json.dumps(facts)})


def trained_weights(model: Model) -> dict:
    """All, or the adapters (lora.py) if the others are frozen."""
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


def load(path: pathlib.Path) -> dict:
    """The facts, and "weights" and "optimizers" as save() was given them."""
    try:
        tensors, metadata = safetensors.read(path)
    except FileNotFoundError as error:
        raise TrainingError(f"{path}: is missing; train a model first: python3 -m training train") from error
    except TrainingError as error:
        raise TrainingError(f"{path}: is no checkpoint of python3 -m training train: {error}") from error
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise TrainingError(f"{path}: is no checkpoint of python3 -m training train ({FORMAT})")
    state = {**json.loads(metadata["facts"]), "weights": {}, "optimizers": [{}, {}]}
    for name, tensor in tensors.items():
        kind, rest = name.split("/", 1)
        if kind == "weights":
            state["weights"][rest] = tensor
        else:
            number, weight, value = rest.split("/")
            state["optimizers"][int(number)].setdefault(int(weight), {})[value] = tensor
    return state


def model_of(state: dict, path) -> Model:
    try:
        model = Model(Shape(**state["shape"]))
        model.load_state_dict(state["weights"])
    except (KeyError, TypeError, RuntimeError) as error:
        raise TrainingError(f"{path}: its weights are not those of its shape: {str(error).splitlines()[0]}") from error
    return model
