"""How the parts of scripts/bench run efimd-bench, and how they write tables."""
import os
import pathlib
import shlex
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
BENCH = RELEASE / "tests" / "bench" / "efimd-bench"
MODELS = RELEASE / "bench"
BUNDLED = ROOT / "models" / "efim-boot.gguf"
TRACE = "tests/bench/trace.jsonl"
TYPES = ("Q8_0", "Q4_0", "Q4_K")
PROMPT, GENERATED = 512, 64  # as measure_speed() has them


class Failed(Exception):
    """What could not be measured, and why."""


def said(command, **options):
    """The standard output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, text=True, stdout=subprocess.PIPE, check=False, **options)
    if done.returncode != 0:
        raise Failed(f"{shlex.join(map(str, command))}: exit status {done.returncode}")
    return done.stdout


def bench(*arguments, model=None, config=""):
    """The output of efimd-bench with this model and configuration; nothing of the user's is read or kept."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "config.toml").write_text(config, encoding="utf-8")
        own = {"EFIMD_CONFIG": f"{folder}/config.toml", "EFIMD_CACHE_DIR": f"{folder}/cache",
               "EFIMD_STATE_DIR": f"{folder}/state", "EFIMD_RUNTIME_DIR": f"{folder}/run"}
        if model:
            own["EFIMD_MODEL"] = str(model)
        return said([BENCH, *arguments], env=os.environ | own)


def model_of(weights):
    """The file of random weights of this type, written if it is not there."""
    path = MODELS / f"{weights}.gguf"
    if not path.exists():
        MODELS.mkdir(parents=True, exist_ok=True)
        bench("write", weights, MODELS / "new")
        (MODELS / "new").rename(path)
    return path


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def sources(*patterns):
    return said(["git", "ls-files", "-z", *patterns]).rstrip("\0").split("\0")


def markdown_of(text):
    """The tables of a text, and the sentences that belong to them."""
    return text.strip() + "\n"


def block(text):
    """What a command wrote, as it is."""
    return "```\n" + text.strip() + "\n```\n"
