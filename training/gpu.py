"""Trains a large model on a machine that is lent for minutes: one NVIDIA card, PyTorch and no network. Its input is shards.

    python3 -m training gpu --shards .shards --out build/gpu-train --seconds 540     again, until it says that it is done

The first call measures how many tokens a second the card trains, and plans as many steps as fit into --total-seconds; the plan stays
in OUT/plan.json, so that every call goes on with the same. With --order nothing is measured: the rate stays until it is time for it to
fall, and falls over as many steps as the rest of the time has then; a file OUT/seconds may say meanwhile how long all calls train.
OUT/checkpoint.safetensors resumes exactly; at the end OUT/weights.safetensors has the weights alone, in bf16, for `pieces`, `export` and
`train --from`. --plan trains nothing and says what fits: with --speed where no card is at hand.
"""
import argparse
import collections
import dataclasses
import json
import pathlib
import time

from training.errors import TrainingError
from training.files import whole_file

PLAN = "plan.json"
SECONDS = "seconds"  # a file: how long a lease is may turn out later
WEIGHTS = "weights.safetensors"
TOKENS_WANTED = 800_000_000
PARAMETERS_WANTED = 100_000_000
START_S = 45  # of each call: the machine's PyTorch loads and compiles, the shard is unpacked, the checkpoint read and written
RECENT_STEPS = 50  # whose time says how many are still to come
MEASURED_STEPS = (3, 8)  # not counted, counted
DECAY = 0.3
WARMUP_SHARE = 0.01


@dataclasses.dataclass(frozen=True)
class Fit:
    """What fits."""

    speed: float  # tokens a second
    steps: int
    tokens: int
    epochs: int
    unique: int

    def told(self, parameters: int, seconds: float) -> str:
        flops = 6 * parameters * self.speed
        lines = [f"{parameters / 1e6:.1f} M parameters, {self.speed:,.0f} tokens/s ({flops / 1e12:.0f} TFLOP/s without attention)",
                 f"in {seconds / 60:.0f} min: {self.tokens / 1e6:.1f} M tokens in {self.steps} steps, {self.epochs} epochs at most over "
                 f"{self.unique / 1e6:.1f} M"]
        if self.tokens < TOKENS_WANTED:
            lines.append(f"fewer than {TOKENS_WANTED / 1e6:.0f} M tokens: these would take {TOKENS_WANTED / self.speed / 60:.0f} min")
        if parameters < PARAMETERS_WANTED:
            lines.append(f"fewer than {PARAMETERS_WANTED / 1e6:.0f} M parameters")
        if self.epochs > 8:
            lines.append("more than 8 epochs teach little: carry more shards")
        return "\n".join(lines)


def fit(speed: float, seconds: float, calls: int, rows: int, context: int, batch: int) -> Fit:
    """As many steps as the time allows; as few epochs as have them."""
    left = max(0.0, seconds - calls * START_S)
    steps = max(1, int(speed * left / (batch * context)))
    epochs = max(1, -(-steps * batch // rows))
    return Fit(speed, steps, steps * batch * context, epochs, rows * context)


def shape_of(options, rows):
    from training.model import Shape

    return Shape(vocabulary=rows.vocabulary, width=options.width, layers=options.layers, heads=options.heads, kv_heads=options.kv_heads,
                 feed_forward=options.feed_forward, context=rows.context)


def parameters_of(shape) -> int:
    """Without making them."""
    layer = shape.width * shape.head * (2 * shape.heads + 2 * shape.kv_heads) + 3 * shape.width * shape.feed_forward + 2 * shape.width
    return shape.vocabulary * shape.width + shape.layers * layer + shape.width


def new_run(options, rows, plan, device):
    from training.model import Model
    from training.run import Run

    model = Model(shape_of(options, rows))
    model.draw(options.seed)
    return Run(model, plan, rows, None, device, options.out, compiled=options.compile == "yes" or options.compile == "auto" and device.type == "cuda")


def plan_for(options, steps: int, decay: float = DECAY):
    from training.run import Plan

    return Plan(steps=steps, batch=options.batch, microbatch=min(options.microbatch, options.batch), rate=options.rate,
                warmup=options.warmup or max(1, int(steps * WARMUP_SHARE)), decay=decay, optimizer=options.optimizer, precision=options.precision,
                opening_weight=options.opening_weight)


def measured_speed(options, rows, device) -> float:
    """Tokens a second of whole steps, on a model that is thrown away."""
    import torch

    run = new_run(options, rows, plan_for(options, sum(MEASURED_STEPS)), device)
    begin = 0.0
    for step in range(sum(MEASURED_STEPS)):
        if step == MEASURED_STEPS[0]:
            begin = time.monotonic()
        run._train_step()
    speed = MEASURED_STEPS[1] * options.batch * rows.context / (time.monotonic() - begin)
    del run
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return speed


def plan_kept(options, rows, device) -> tuple:
    """(steps, epochs) of the first call's plan."""
    path = options.out / PLAN
    if path.exists():
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            return kept["steps"], kept["epochs"]
        except (ValueError, KeyError, TypeError) as error:
            raise TrainingError(f"{path}: is damaged: {error}") from error
    begin = time.monotonic()
    speed = options.speed or measured_speed(options, rows, device)
    calls = max(1, round(options.total_seconds / options.seconds))
    planned = fit(speed, options.total_seconds - (time.monotonic() - begin), calls, rows.count, rows.context, options.batch)
    print(planned.told(parameters_of(shape_of(options, rows)), options.total_seconds), flush=True)
    with whole_file(path, "w") as file:
        json.dump(dataclasses.asdict(planned), file)
    return planned.steps, planned.epochs


def with_kept_fall(run):
    """The run's plan, whose rate falls as its checkpoint says."""
    from training import checkpoint

    if not run.path.exists():
        return run.plan
    kept = checkpoint.load(run.path)["plan"]
    return dataclasses.replace(run.plan, steps=kept["steps"], decay=kept["decay"])


class Fall:
    """Lets the rate fall once only DECAY of the time or of the rows is left, over the steps that fit into it."""

    def __init__(self, run, seconds: float):
        """`seconds` of training in all calls, unless the folder has a file that says another number."""
        self._run, self._seconds, self._ends = run, seconds, collections.deque([time.monotonic()], RECENT_STEPS + 1)

    def seconds(self) -> float:
        try:
            return float((self._run.out / SECONDS).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return self._seconds

    def __call__(self) -> None:
        run, seconds = self._run, self.seconds()
        self._ends.append(time.monotonic())
        if run.plan.decay or run.seconds < (1 - DECAY) * seconds and run.step < (1 - DECAY) * run.plan.steps:
            return
        step_s = (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)
        left = min(max(1, int((seconds - run.seconds) / step_s)), run.plan.steps - run.step)
        run.plan = dataclasses.replace(run.plan, steps=run.step + left, decay=left / (run.step + left))
        run.save()  # it has the plan now, which decides all that follows


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training gpu", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=540, help="of this call, the start included")
    parser.add_argument("--total-seconds", type=float, default=1500, help="of all calls")
    parser.add_argument("--plan", action="store_true", help="say what fits, and train nothing")
    parser.add_argument("--speed", type=float, default=0, help="tokens a second; 0: measured")
    for name, value in (("width", 768), ("layers", 14), ("heads", 12), ("kv-heads", 3), ("feed-forward", 2304), ("batch", 128),
                        ("microbatch", 32), ("seed", 1), ("threads", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--order", type=lambda text: [int(word) for word in text.split(",")], metavar="0,0,1,...",
                        help="the shards, an epoch each; with it the clock plans, and no measurement")
    parser.add_argument("--wait", type=float, default=0, help="seconds for a shard that is still on its way")
    parser.add_argument("--warmup", type=int, default=0, help="steps; a hundredth of all unless given")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--optimizer", choices=("muon", "adamw"), default="muon")
    parser.add_argument("--opening-weight", type=float, default=4)
    parser.add_argument("--precision", choices=("bf16", "f32"), default="bf16")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--compile", choices=("auto", "yes", "no"), default="auto", help="by torch.compile; auto: on a card")
    options = parser.parse_args(words)
    if not (options.seconds > 0 and options.total_seconds > 0):
        parser.error("--seconds and --total-seconds are more than 0")
    begin = time.monotonic()

    from training.shards import ShardRows
    from training.run import device_of
    from training.train import use_threads

    use_threads(options.threads)
    rows = ShardRows(options.shards, wait_s=options.wait)
    if options.plan and options.speed:
        calls = max(1, round(options.total_seconds / options.seconds))
        print(fit(options.speed, options.total_seconds, calls, rows.count, rows.context, options.batch)
              .told(parameters_of(shape_of(options, rows)), options.total_seconds))
        return 0
    device = device_of(options.device)
    steps, epochs = (1 << 30, 1) if options.order else plan_kept(options, rows, device)
    if options.plan:
        return 0
    rows.visit(options.order or [number for number in range(len(rows.shards)) for _ in range(epochs)])
    run = new_run(options, rows, plan_for(options, min(steps, rows.steps(options.batch)), 0.0 if options.order else DECAY), device)
    if options.order:
        run.plan = with_kept_fall(run)
    resumed = run.resume()
    fall = Fall(run, options.total_seconds - (time.monotonic() - begin) - START_S / 3) if options.order else lambda: None
    done = run.train(max(1.0, options.seconds - (time.monotonic() - begin) - START_S / 3), fall)
    run.plot()
    if done:
        from training import checkpoint

        checkpoint.save_weights(options.out / WEIGHTS, run.model, {
            "plan": dataclasses.asdict(run.plan), "step": run.step, "losses": run.losses, "validations": [], "seconds": run.seconds,
            "fragment_share": rows.fragment_share})
    after = "done" if done else "not done"
    if not done and not rows.here(run.step, options.batch):
        after = f"wants {rows.wanted(run.step, options.batch)}"
    print(f"{run.path}: {after} at step {run.step} of {run.plan.steps}{' (resumed)' if resumed else ''}, loss "
          f"{sum(run.losses[-50:]) / max(1, len(run.losses[-50:])):.3f}, {run.seconds:.0f} s")
    return 0 if done else 3
