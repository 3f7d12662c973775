"""One training run: steps, a schedule, checkpoints. train.py and finetune.py say of what."""
import concurrent.futures
import dataclasses
import pathlib
import re
import signal
import time

import torch

from training import checkpoint, progress
from training.errors import TrainingError
from training.optimizer import Optimizers
from training.rows import Rows

CHECKPOINT_EVERY_S = 300
VALIDATE_EVERY = 200  # steps
VALIDATION_ROWS = 64
GRADIENT_NORM_MAX = 1.0


@dataclasses.dataclass(frozen=True)
class Plan:
    """The identity of a run; it resumes only as the same. The rate rises over `warmup` steps, stays, and falls to nothing over
    the last
    `decay` (a share) of all steps."""

    steps: int
    batch: int = 8  # rows
    microbatch: int = 4  # rows evaluated at once
    rate: float = 3e-3
    warmup: int = 40
    decay: float = 0.3
    optimizer: str = "muon"
    precision: str = "bf16"
    opening_weight: float = 0.0  # the n-th token after <fim_middle> weighs 1 + opening_weight / n

    def goes_on_from(self, other: "Plan") -> bool:
        """Without decay the number of steps decides nothing, so there may be more of them than were planned."""
        return self == (dataclasses.replace(other, steps=self.steps) if self.decay == 0 else other)

    def rate_at(self, step: int) -> float:
        falling = max(1.0, self.decay * self.steps)
        return self.rate * min(1.0, (step + 1) / max(1, self.warmup), (self.steps - step) / falling)


def device_of(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise TrainingError("there is no GPU that PyTorch can use here; --device cpu trains without one"
                            + ("" if torch.backends.cuda.is_built() else " (this PyTorch was built without CUDA)"))
    return torch.device(name)


def precision_of(name: str, device: torch.device) -> str:
    """Without such instructions PyTorch multiplies bf16 number by number, nine times as long as f32 or longer."""
    if name != "auto":
        return name
    cpu = pathlib.Path("/proc/cpuinfo")
    has_bf16 = device.type == "cuda" or (cpu.exists() and re.search(r"\b(avx512_bf16|amx_bf16|bf16)\b", cpu.read_text()))
    return "bf16" if has_bf16 else "f32"


class Run:
    def __init__(self, model, plan: Plan, rows, validation, device, out: pathlib.Path, compiled: bool = False):
        """`rows`: Rows or shards.ShardRows. `compiled`: by torch.compile, in plain operations."""
        self.model, self.plan, self.rows, self.validation = model.to(device), plan, rows, validation
        self.device, self.out = device, out
        self.precision = torch.bfloat16 if plan.precision == "bf16" else torch.float32
        self.optimizers = Optimizers(model, plan.optimizer, self.precision)
        self.step = 0
        self.losses, self.validations, self.seconds = [], [], 0.0
        self._stop = False
        self._ahead, self._drawn = concurrent.futures.ThreadPoolExecutor(1), {}
        self._row_losses = self.model.losses
        if compiled:
            if not hasattr(torch, "compile"):
                raise TrainingError(f"this PyTorch ({torch.__version__}) compiles no models; PyTorch 2 does")
            self.model.use_plain_operations()
            self._row_losses = torch.compile(self.model.losses)

    @property
    def path(self) -> pathlib.Path:
        return self.out / checkpoint.FILE

    def resume(self) -> bool:
        """Goes on from the folder's checkpoint, if it has one."""
        if not self.path.exists():
            return False
        state = checkpoint.load(self.path)
        if state["shape"] != dataclasses.asdict(self.model.shape):
            raise TrainingError(f"{self.path}: is of a model of another shape or architecture; give another --out, or its options")
        if not self.plan.goes_on_from(Plan(**state["plan"])):
            raise TrainingError(f"{self.path}: is of a run with other options; give another --out, or its options: {state['plan']}")
        sizes = lambda weights: {name: weight.shape for name, weight in weights.items()}
        if sizes(state["weights"]) != sizes(checkpoint.trained_weights(self.model)):
            raise TrainingError(f"{self.path}: other weights were trained there; give another --out, or the same --lora")
        self.model.load_state_dict(state["weights"], strict=False)
        self.optimizers.load(state["optimizers"])
        self.step, self.losses, self.validations = state["step"], state["losses"], state["validations"]
        self.seconds = state["seconds"]
        return True

    def save(self) -> None:
        checkpoint.save(self.path, self.model, self.optimizers.state(), {
            "plan": dataclasses.asdict(self.plan), "step": self.step, "losses": self.losses,
            "validations": self.validations, "seconds": self.seconds, "fragment_share": self.rows.fragment_share})

    def train(self, budget_s: float, after_step=lambda: None) -> bool:
        """Trains to the end, for `budget_s` of wall clock, until a signal asks for an end or a shard is missing; then saves. True at
        the end. `after_step` may change the plan."""
        line = progress.ProgressLine(self.plan.steps, self.plan.batch * self.rows.context)
        begin = saved = time.monotonic()
        before = self.seconds
        old = {number: signal.signal(number, self._ask_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while (self.step < self.plan.steps and not self._stop and time.monotonic() - begin < budget_s
                   and self.rows.here(self.step, self.plan.batch)):
                self._train_step()
                self.seconds = before + time.monotonic() - begin
                line.step(self.step, sum(self.losses[-20:]) / len(self.losses[-20:]),
                          self.validations[-1][1] if self.validations else None)
                after_step()
                if time.monotonic() - saved > CHECKPOINT_EVERY_S:
                    self.save()
                    saved = time.monotonic()
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
            line.end()
        self.save()
        return self.step >= self.plan.steps

    def _ask_to_stop(self, *_) -> None:
        self._stop = True

    def _draw(self, step: int):
        """The step's rows and their weights."""
        rows = self.rows.batch(step, self.plan.batch)
        return rows, 1 + self.plan.opening_weight * self.rows.opening_shares(rows)

    def _drawn_rows(self):
        """Those of this step, drawn while the one before was computed; those of the next begin to be drawn."""
        drawn = self._drawn.pop(self.step, None) or self._ahead.submit(self._draw, self.step)
        out = drawn.result()
        if self.step + 1 < self.plan.steps and self.rows.here(self.step + 1, self.plan.batch):
            self._drawn = {self.step + 1: self._ahead.submit(self._draw, self.step + 1)}
        return out

    def _train_step(self) -> None:
        drawn, weights = self._drawn_rows()
        weights = torch.from_numpy(weights).to(self.device)
        weights /= weights.sum()
        rows = torch.from_numpy(drawn).to(self.device)
        total = torch.zeros((), dtype=torch.float64, device=self.device)  # not read before the end: a card need not wait
        for part, by in zip(rows.split(self.plan.microbatch), weights.split(self.plan.microbatch)):
            loss = (self._row_losses(part, self.precision) * by).sum()
            loss.backward()
            total += loss.detach()
        total = total.item()
        if not total < float("inf"):
            raise TrainingError(f"step {self.step}: the loss is {total}; a lower --rate may help. The last checkpoint is untouched")
        torch.nn.utils.clip_grad_norm_([weight for weight in self.model.parameters() if weight.requires_grad], GRADIENT_NORM_MAX)
        self.optimizers.step(self.plan.rate_at(self.step))
        self.losses.append(total)
        self.step += 1
        if self.validation is not None and (self.step % VALIDATE_EVERY == 0 or self.step == self.plan.steps):
            self.validations.append((self.step, self._validation_loss()))

    @torch.no_grad()
    def _validation_loss(self) -> float:
        count = min(VALIDATION_ROWS, self.validation.count)
        total = 0.0
        for begin in range(0, count, self.plan.microbatch):
            size = min(self.plan.microbatch, count - begin)
            rows = torch.from_numpy(self.validation.first(begin, size)).to(self.device)
            total += self.model.loss(rows, self.precision).item() * size
        return total / count

    def plot(self) -> None:
        tokens = self.plan.batch * self.rows.context
        progress.plot({self.out.name: ([tokens * (step + 1) for step in range(self.step)], self.losses,
                                       [(tokens * step, loss) for step, loss in self.validations])}, self.out / "loss.png")
