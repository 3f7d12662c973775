"""Measures GGUF files with efimd, at cursors in the corpus's test packages: random ones and line starts, each with the typed text
before the suffix (PSM), after <MID> (EFIM), and there with its end healed (EFIM + healing). A model to which efimd shows the
path of the file gets it here, too, as the corpus has it. And at places: what the daemon shows with the model alone (places.py).

Printed are tables in Markdown, with 95 % intervals; OUT/results.json has every number, OUT/cursors-KIND.jsonl the cursors and
OUT/NAME-KIND.jsonl what was written at each.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

from training import baselines, corpus, cursors, humaneval, measures, places
from training.errors import TrainingError
from training.files import whole_file

FORMS = ("psm", "efim", "healed")
TITLES = {"psm": "PSM", "efim": "EFIM", "healed": "EFIM + healing"}
CURSOR_KINDS = ("random", "line")
KINDS = (*CURSOR_KINDS, "places")
LINE_TOKENS_MAX = 24
TASK_TOKENS_MAX = 256
CHUNK = 500  # cursors of one efimd-bench


def fill(options, model: pathlib.Path, cursors_in: list, tokens_max: int, stop: str, kept: pathlib.Path) -> dict:
    """form -> efimd-bench's answers, one for each cursor, kept in a file. Answers for the same model, cursors and options are not
    asked again, so that a stopped evaluation goes on."""
    asked = {"model": digest(model.read_bytes()), "cursors": digest(json.dumps(cursors_in).encode()), "max_tokens": tokens_max,
             "stop": stop}
    answers = []
    if kept.exists():
        before, *lines = map(json.loads, kept.read_text(encoding="utf-8").split("\n")[:-1])
        answers = lines if before == asked else []
    while len(answers) < len(cursors_in) * len(FORMS):
        begin = len(answers) // len(FORMS)
        answers += fill_part(options, model, cursors_in[begin:begin + CHUNK], tokens_max, stop)
        write_lines(kept, [asked, *answers])
    return {form: answers[at::len(FORMS)] for at, form in enumerate(FORMS)}


def fill_part(options, model: pathlib.Path, cursors_in: list, tokens_max: int, stop: str) -> list:
    cursor_file = options.out / "asked.jsonl"
    write_lines(cursor_file, cursors_in)
    said = bench(options, model, ["fill", cursor_file, "--form", ",".join(FORMS), "--max-tokens", str(tokens_max), "--stop", stop])
    answers = [json.loads(line) for line in said.split("\n") if line]
    if [answer["form"] for answer in answers] != list(FORMS) * len(cursors_in):
        raise TrainingError(f"{model}: efimd-bench gave {len(answers)} answers for {len(cursors_in)} cursors in {len(FORMS)} forms")
    return [{"text": "", "generatedTokens": 0, "generationMs": 0.0, **answer} for answer in answers]


def bench(options, model: pathlib.Path, words: list) -> str:
    """efimd-bench's output."""
    config = options.out / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[device]\nthreads = {options.threads}\n" if options.threads else "")  # the user's own has no say in it
    environment = {**os.environ, "EFIMD_MODEL": str(model.absolute()), "EFIMD_CONFIG": str(config.absolute())}
    try:
        ran = subprocess.run([options.bench, *words], capture_output=True, text=True, encoding="utf-8", env=environment, check=False)
    except FileNotFoundError as error:
        raise TrainingError(f"{options.bench}: is missing; build it (cmake --build --preset release --target efimd-bench), or name "
                            "it with --bench") from error
    if ran.returncode != 0:
        raise TrainingError(f"{model}: {ran.stderr.strip() or f'efimd-bench ended with {ran.returncode}'}")
    return ran.stdout


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def write_lines(path: pathlib.Path, values) -> None:
    with whole_file(path, "w") as file:
        for value in values:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")


def score(drawn: list, texts: list) -> dict:
    """Of one way to fill cursors: shares with their numbers, and every value, so that ways can be compared cursor by cursor."""
    exact = [measures.exact(text, cursor.rest) for cursor, text in zip(drawn, texts)]
    words = [measures.word_exact(text, cursor.typed_line, cursor.rest) for cursor, text in zip(drawn, texts)]
    parsed = [measures.parses(cursor, text) for cursor, text in zip(drawn, texts)]
    return {"exact": exact, "word": [value for value in words if value is not None],
            "similarity": [measures.similarity(text, cursor.rest) for cursor, text in zip(drawn, texts)],
            "parses": [value for value in parsed if value is not None]}


def share(values: list) -> str:
    if not values:
        return "-"
    low, high = measures.wilson(sum(values), len(values))
    return f"{100 * sum(values) / len(values):.1f} ({100 * low:.1f}-{100 * high:.1f})"


def mean(values: list) -> str:
    value, half = measures.mean_and_interval(values)
    return f"{value:.3f} ± {half:.3f}"


def row(name: str, result: dict) -> str:
    speed = f"{result['tokens'] / result['seconds']:.0f}" if result.get("seconds") else ""
    cells = [name, share(result["exact"]), share(result["word"]), mean(result["similarity"]), share(result["parses"]), speed]
    return "| " + " | ".join(cells) + " |"


def table(kind: str, count: int, results: dict) -> str:
    title = {"random": "random cursors", "line": "line starts"}[kind]
    head = [f"**{count} {title}**", "",
            "| | rest of the line exact, % | word finished, % | edit similarity | file parses, % | tokens/s |",
            "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join(head + [row(name, result) for name, result in results.items()]) + "\n"


def differences(models: list, results: dict) -> str:
    """Cursor by cursor: what EFIM loses against PSM, and what healing brings back."""
    lines = []
    for name in models:
        for first, second in (("efim", "psm"), ("healed", "efim")):
            pair = zip(results[f"{name}, {TITLES[first]}"]["exact"], results[f"{name}, {TITLES[second]}"]["exact"])
            value, half = measures.mean_and_interval([a - b for a, b in pair])
            lines.append(f"{name}: {TITLES[first]} against {TITLES[second]} {100 * value:+.1f} ± {100 * half:.1f} points exact")
    return "\n".join(lines) + "\n"


def evaluate_cursors(options, models: dict) -> dict:
    records = list(corpus.records(options.corpus, "test"))
    results = {}
    for kind in (kind for kind in options.kinds if kind in CURSOR_KINDS):
        drawn = cursors.draw(records, kind, options.cursors, options.seed)
        asked = [{key: getattr(cursor, key) for key in ("before", "increment", "after", "rest", "path")} for cursor in drawn]
        write_lines(options.out / f"cursors-{kind}.jsonl", asked)
        results[kind] = {"most similar earlier line": score(drawn, [baselines.similar_line(cursor) for cursor in drawn])}
        for name, model in models.items():
            filled = fill(options, model, asked, LINE_TOKENS_MAX, "line", options.out / f"{name}-{kind}.jsonl")
            for form, answers in filled.items():
                result = score(drawn, [answer["text"] for answer in answers])
                result["tokens"] = sum(answer["generatedTokens"] for answer in answers)
                result["seconds"] = sum(answer["generationMs"] for answer in answers) / 1000
                results[kind][f"{name}, {TITLES[form]}"] = result
                print(f"{kind}: {row(f'{name}, {TITLES[form]}', result)}", file=sys.stderr, flush=True)
        print(table(kind, len(drawn), results[kind]))
        print(differences(list(models), results[kind]))
    return results


def evaluate_places(options, models: dict) -> dict:
    if "places" not in options.kinds:
        return {}
    folders = places.unpacked(options.corpus, options.out / "projects")
    results = {}
    for name, model in models.items():
        results[name] = places.measured(lambda words: bench(options, model, words), folders, options.cursors, options.seed)
        print(f"places: {places.row(name, results[name])}", file=sys.stderr, flush=True)
    print(places.table(results))
    return results


def evaluate_humaneval(options, models: dict) -> dict:
    results = {}
    for path in options.humaneval:
        tasks = humaneval.read(path)
        asked = list(map(humaneval.cursor_of, tasks))
        results[path.name] = {}
        print(f"**{path.name}, {len(tasks)} tasks**\n\n| | pass@1, % |\n| --- | --- |")
        for name, model in models.items():
            stop = "line" if "single-line" in path.name.lower() or "singleline" in path.name.lower() else "none"
            filled = fill(options, model, asked, TASK_TOKENS_MAX, stop, options.out / f"{name}-{path.name}.jsonl")
            for form, answers in filled.items():
                with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                    solved = list(pool.map(humaneval.solved, tasks, (answer["text"] for answer in answers)))
                results[path.name][f"{name}, {TITLES[form]}"] = {"solved": solved}
                print(f"| {name}, {TITLES[form]} | {share(solved)} |", flush=True)
        print()
    return results


def models_of(words: list) -> dict:
    models = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals or not name or "/" in name:
            raise TrainingError(f"--model {word}: NAME=FILE.gguf is wanted, the name without slashes")
        if not pathlib.Path(path).is_file():
            raise TrainingError(f"--model {word}: {path} is no file")
        if name in models:
            raise TrainingError(f"--model {word}: another model has the name {name}; give each its own")
        models[name] = pathlib.Path(path)
    return models


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training evaluate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--model", action="append", required=True, metavar="NAME=FILE.gguf", help="again for more models")
    parser.add_argument("--cursors", type=int, default=2000, help="of each kind")
    parser.add_argument("--humaneval", type=pathlib.Path, action="append", default=[], metavar="FILE",
                        help="HumanEval-Infilling tasks; again for more files")
    parser.add_argument("--bench", type=pathlib.Path, default=pathlib.Path("build/release/tests/bench/efimd-bench"))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--threads", type=int, default=0, help="of efimd-bench; 0: as many as there are cores")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    models = models_of(options.model)
    results = {"cursors": evaluate_cursors(options, models), "places": evaluate_places(options, models), "humaneval": evaluate_humaneval(options, models)}
    with whole_file(options.out / "results.json", "w") as file:
        json.dump(results, file)
    return 0
