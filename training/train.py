"""Trains a model on samples: from scratch, or on from a checkpoint (--from).

OUT is a folder: checkpoint.safetensors, and loss.png. The same command goes on from OUT's checkpoint, exactly as if it had not been
stopped: the same weights, on the same machine with the same --threads. --budget ends it after so many seconds; so does Ctrl-C.
"""
import argparse
import dataclasses
import os
import pathlib

from training.errors import TrainingError


def add_run_options(parser, rate, warmup: int, decay: float, optimizer: str, opening_weight: float, rate_said: str = "") -> None:
    """`rate_said`: what --help says of a rate that is None, which the caller chooses."""
    parser.add_argument("--samples", type=pathlib.Path, required=True)
    parser.add_argument("--validation", type=pathlib.Path, help="samples of the validation split")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, default=8, help="rows a step")
    parser.add_argument("--microbatch", type=int, default=4, help="rows evaluated at once; fewer need less memory")
    parser.add_argument("--rate", type=float, default=rate, help=f"learning rate, {rate_said or rate} unless given")
    parser.add_argument("--warmup", type=int, default=warmup, help="steps over which the rate rises")
    parser.add_argument("--decay", type=float, default=decay, help="share of the steps over which it falls to nothing")
    parser.add_argument("--optimizer", choices=("muon", "adamw"), default=optimizer)
    parser.add_argument("--opening-weight", type=float, default=opening_weight,
                        help=f"the n-th token after <fim_middle> weighs 1 + this / n; {opening_weight:g} unless given")
    parser.add_argument("--precision", choices=("auto", "bf16", "f32"), default="auto",
                        help="of products; auto: bf16 on a GPU and on a CPU that multiplies it, else f32")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: as many as there are cores")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds of wall clock; then it saves and stops")


def use_threads(count: int) -> None:
    """PyTorch's own choice is one on some machines with more."""
    import torch

    torch.set_num_threads(count or len(os.sched_getaffinity(0)))


def validation_of(options, vocabulary: int):
    """The rows of --validation, or None. Their first use is many steps away, so that they are looked at here."""
    from training.rows import Rows

    if options.validation is None:
        return None
    rows = Rows(options.validation)
    if rows.highest_token() >= vocabulary:
        raise TrainingError(f"{options.validation}: has tokens that the model has not ({vocabulary} pieces); make these samples with the "
                            "tokenizer of --samples")
    return rows


def plan_of(options):
    from training.run import Plan, device_of, precision_of

    if not 0 <= options.opening_weight < float("inf"):
        raise TrainingError("--opening-weight is at least 0")
    if options.steps < 1 or options.batch < 1 or options.microbatch < 1:
        raise TrainingError("--steps, --batch and --microbatch are at least 1")
    precision = precision_of(options.precision, device_of(options.device))
    return Plan(steps=options.steps, batch=options.batch, microbatch=min(options.microbatch, options.batch), rate=options.rate,
                warmup=options.warmup, decay=options.decay, optimizer=options.optimizer, precision=precision,
                opening_weight=options.opening_weight)


def execute(run, options) -> int:
    resumed = run.resume()
    before = run.step
    done = run.train(options.budget)
    run.plot()
    validation = f", validation {run.validations[-1][1]:.3f}" if run.validations else ""
    loss = f"loss {sum(run.losses[-50:]) / len(run.losses[-50:]):.3f}" if run.losses else "no step yet"
    print(f"{run.path}: {'done' if done else 'stopped'} at step {run.step} of {run.plan.steps}"
          f"{f' (resumed at {before})' if resumed else ''}, {loss}{validation}, {run.seconds:.0f} s")
    return 0


def new_model(options, vocabulary: int):
    from training.model import Model, Shape

    if min(options.width, options.layers, options.heads, options.kv_heads, options.feed_forward, vocabulary) < 1:
        raise TrainingError("--vocabulary, --width, --layers, --heads, --kv-heads and --feed-forward are at least 1")
    if options.width % options.heads != 0 or options.width // options.heads % 2 != 0:
        raise TrainingError(f"--width {options.width} is no even multiple of --heads {options.heads}")
    if options.heads % options.kv_heads != 0:
        raise TrainingError(f"--heads {options.heads} is no multiple of --kv-heads {options.kv_heads}")
    model = Model(Shape(vocabulary=vocabulary, width=options.width, layers=options.layers, heads=options.heads,
                        kv_heads=options.kv_heads, feed_forward=options.feed_forward, context=options.context))
    model.draw(options.seed)
    return model


def longer(model, context: int):
    """Training goes from short rows to long ones: the model's context is the longest that it has seen."""
    model.shape = dataclasses.replace(model.shape, context=max(model.shape.context, context))
    return model


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training train", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="parent", type=pathlib.Path,
                        help="a checkpoint.safetensors whose weights and optimizer to begin with")
    parser.add_argument("--vocabulary", type=int, default=4096, help="pieces of the samples' tokenizer")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--kv-heads", type=int, default=1)
    parser.add_argument("--feed-forward", type=int, default=768)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compile", action="store_true",
                        help="by torch.compile: PyTorch 2 and a C++ compiler; begins minutes later, then trains faster")
    parser.add_argument("--epochs", type=int, default=1, help="over each shard, where --samples are shards")
    add_run_options(parser, rate=3e-3, warmup=40, decay=0.3, optimizer="muon", opening_weight=16)
    options = parser.parse_args(words)

    import torch

    from training import checkpoint
    from training.run import Run, device_of
    from training.shards import open_rows

    use_threads(options.threads)
    rows = open_rows(options.samples, options.epochs)
    options.context = rows.context
    parent = checkpoint.load(options.parent) if options.parent else None
    model = longer(checkpoint.model_of(parent, options.parent), rows.context) if parent else new_model(options, options.vocabulary)
    if rows.highest_token() >= model.shape.vocabulary:
        raise TrainingError(f"{options.samples}: has tokens that the model has not ({model.shape.vocabulary} pieces); it is of "
                            "another tokenizer, or --vocabulary is missing")
    plan = plan_of(options)
    run = Run(model, plan, rows, validation_of(options, model.shape.vocabulary), device_of(options.device), options.out,
              compiled=options.compile)
    if parent and parent["plan"]["optimizer"] == plan.optimizer:
        run.optimizers.load(parent["optimizers"])
    return execute(run, options)
