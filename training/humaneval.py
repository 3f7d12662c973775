"""HumanEval-Infilling (Bavarian et al., 2022): files of JSON lines, maybe .gz, of the single-line, multi-line and random-span kinds.
A task is solved when its program passes its tests with what the model wrote in the hole."""
import gzip
import json
import pathlib

from training import sandbox
from training.errors import TrainingError

KEYS = ("task_id", "entry_point", "prompt", "suffix", "test")
TASKS_MAX = 100_000


def read(path: pathlib.Path) -> list:
    opener = gzip.open if path.suffix == ".gz" else open
    tasks = []
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if number > TASKS_MAX:
                    raise TrainingError(f"{path}: more than {TASKS_MAX} tasks")
                if line.strip():
                    task = json.loads(line)
                    tasks.append({key: str(task[key]) for key in KEYS})
    except (ValueError, KeyError, TypeError, EOFError) as error:  # a bad .gz is an OSError, which says so itself
        raise TrainingError(f"{path}: is no HumanEval-Infilling file: {error!r}") from error
    if not tasks:
        raise TrainingError(f"{path}: has no tasks")
    return tasks


def cursor_of(task: dict) -> dict:
    """EFIM's form: the text before the hole on its line was typed."""
    cut = task["prompt"].rfind("\n") + 1
    return {"before": task["prompt"][:cut], "increment": task["prompt"][cut:], "after": task["suffix"]}


def program_of(task: dict, text: str) -> str:
    return f"{task['prompt']}{text}{task['suffix']}\n{task['test']}\ncheck({task['entry_point']})\n"


def solved(task: dict, text: str) -> bool:
    return sandbox.run(program_of(task, text)) == "passed"
