"""Parts of scripts/bench: what an editor's events cost and what is suggested. Each part returns its tables as Markdown, and
its first line of documentation says what is measured."""
import json
import pathlib
import tempfile

from bench_parts.harness import BUNDLED, Failed, bench, block, model_of, percent, said, sources, table

TRACE = "tests/bench/trace.jsonl"


def keystroke(_):
    """An editing trace on the shape of Qwen2.5-Coder-0.5B, Q8_0: `efimd-bench replay tests/bench/trace.jsonl`"""
    def rows_of(*options):
        result = json.loads(bench("replay", TRACE, "--json", *options, model=model_of("Q8_0")))
        return {row["kind"]: row for row in result["treatments"][0]["rows"]}
    at_once, paused = rows_of("--format", "efim"), rows_of("--format", "efim", "--pause-ms", "300")
    plain = rows_of("--format", "fim", "--reuse", "prefix")
    def cells(row):
        return [f"{row['promptMean']:.0f}", f"{row['evaluatedMean']:.1f}", f"{row['firstTokenMsP50']:.0f}, {row['firstTokenMsP95']:.0f}"]
    rows = [[kind, row["n"], *cells(row), *cells(paused[kind]), f"{plain[kind]['evaluatedMean']:.0f}"] for kind, row in at_once.items()]
    total, other = at_once["all"], plain["all"]
    return table(["event", "n", "prompt", "evaluated", "first token p50, p95, ms", "with pauses of 300 ms: prompt", "evaluated",
                  "first token", "plain FIM with prefix reuse: evaluated"], rows) + (
        f"\nPlain FIM with prefix reuse evaluates {other['evaluatedSum'] / total['evaluatedSum']:.0f} times as many tokens"
        f" and needs {other['firstTokenMsSum'] / total['firstTokenMsSum']:.1f} times as long to first tokens;"
        f" its prompts are {other['promptMean'] / total['promptMean']:.1f} times as long.\n")


def places_table(options, *arguments):
    result = json.loads(bench("places", *options.projects, "--count", 70, *arguments, "--json", model=BUNDLED))
    rows = []
    for row in result["places"]:
        finished = row["cursorKind"] == "finished"
        known = ["", "", "", ""] if finished else [
            percent(row["exact"], row["cursors"]), percent(row["savedChars"], row["chars"]),
            percent(row["begins"], row["shown"]), percent(row["wrong"], row["shown"])]
        rows.append([row["cursorKind"], row["recall"], row["cursors"], percent(row["shown"], row["cursors"]), *known,
                     percent(row["cursors"] - row["shown"], row["cursors"]),
                     row["furtherLines"], percent(row["furtherRight"], row["furtherLines"]), f"{row['msP50']:.1f}"])
    return table(["cursors", "recall", "count", "shown", "exact", "chars", "begins", "wrong", "quiet", "further lines", "right", "ms"], rows)


def places(options):
    """The rest of a line was taken away, bundled model: `efimd-bench places --count 70`"""
    names = ", ".join(pathlib.Path(folder).name for folder in options.projects)
    return (places_table(options) + "\nOnly the text above the cursor is there (`--above`), as in a file that is being written:\n\n"
            + places_table(options, "--above") + f"\nProjects: {names}.\n")


def source_files(folder):
    return sorted(path for path in pathlib.Path(folder).rglob("*") if path.suffix in (".c", ".cc", ".h", ".py", ".go", ".rs", ".ts", ".js")
                  and 4_000 < path.stat().st_size < 60_000)


RECALL = {"without recall": "[completion]\nrecall = false\n", "with recall": "[completion]\nrecall = true\n"}


def typed_table(files, lines, configs, *new):
    """`configs`: a column's title to what stands in config.toml"""
    columns = [json.loads(bench("type", *files, "--lines", lines, "--speed", 10, "--json", *new, model=BUNDLED, config=config))["typing"]
               for config in configs.values()]
    def row(name, text_of):
        return [name, *map(text_of, columns)]
    def share_row(name, key):
        return row(name, lambda typed: f"{100 * typed[key]:.1f} %")
    return table([f"{len(files)} files, {columns[0]['keysByHand']} keys typed by hand", *configs], [
        row("pressed", lambda typed: typed["keys"]), share_row("keystrokes saved", "savedShare"),
        share_row("with a suggestion", "suggestedShare"), share_row("answered before the next key", "answeredShare"),
        share_row("answered by typing through", "typedThroughShare"),
        row("key to suggestion p50, p95, p99, ms", lambda typed: ", ".join(f"{typed[f'suggestionMsP{p}']:.0f}" for p in (50, 95, 99))),
        row("CPU time per minute of typing, s", lambda typed: f"{typed['cpuSPerMinute']:.1f}")])


def typed_files(options):
    files = []
    for folder in options.projects:
        found = source_files(folder)
        step = max(1, len(found) // 4)
        files += found[::step][:4]
    if not files:
        raise Failed("no file of 4 to 60 kB is in these projects")
    return files


def typing(options):
    """Lines typed again at ten times a person's speed, bundled model: `efimd-bench type --lines 4 --speed 10`"""
    files = typed_files(options)
    return (typed_table(files, 4, RECALL) + "\nThe same files typed from their beginning, nothing of them there: `--new --lines 10`:\n\n"
            + typed_table(files, 10, RECALL, "--new"))


def edits(options):
    """Whether the edits of other files in the prompt help, bundled model, recall off: `efimd-bench type --lines 4 --speed 10`"""
    without = RECALL["without recall"]
    return typed_table(typed_files(options), 4, {"without edits": without, "with edits": without + '[context]\nedits = "on"\n'})


def paper(_):
    """The EFIM paper's workload with 4 users, shape of 0.5B, Q8_0: `efimd-bench rounds --users 4`"""
    return block(bench("rounds", "--users", 4, *sources("daemon/text/*.cpp", "engine/tokenizer/*.cpp"), model=model_of("Q8_0")))


def store(_):
    """What a stored prompt is worth, shape of 0.5B, Q8_0: `efimd-bench store`"""
    return block(bench("store", "daemon/completion/answer/idle.cpp", "--prompt-tokens", 6000, model=model_of("Q8_0")))


def healing(_):
    """Words broken at 2,000 random cursors, one thread: `efimd-bench healing`"""
    files = sources("daemon/*.cpp", "training/*.py", "editors/*.lua")
    return "\n".join(bench("healing", *kind, "--threads", 1, BUNDLED, *files) for kind in ([], ["--random", "--layers", 1]))


def minutes_table(files, *above):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as trace:
        trace.write(said(["python3", "tests/bench/traces/minutes.py", *files, *above]))
        trace.flush()
        result = json.loads(bench("replay", trace.name, "--format", "efim", "--pause-ms", 300, "--json", model=model_of("Q8_0")))
    rows = [[row["kind"], row["n"], f"{row['evaluatedMean']:.1f} ({row['evaluatedMax']:.0f})", f"{row['promptMean']:.0f}",
             f"{row['shownMean']:.0f} %", f"{row['firstTokenMsP50']:.0f}, {row['firstTokenMsP95']:.0f}"]
            for row in result["treatments"][0]["rows"]]
    return result["windowTokens"], table(["event", "n", "evaluated, mean (most)", "prompt", "shown of the file", "first token p50, p95, ms"], rows)


def window(options):
    """Five files, a minute each, then back to each, shape of 0.5B, Q8_0: `minutes.py`, `efimd-bench replay --pause-ms 300`"""
    files = [min(found, key=lambda path: abs(path.stat().st_size - 10_000)) for found in map(source_files, options.projects) if found][:5]
    if not files:
        raise Failed("no source file is in these projects")
    names = ", ".join(f"`{path.name}` ({path.stat().st_size / 1000:.0f} kB)" for path in files)
    tokens, steady = minutes_table(files)
    _, above = minutes_table(files, "--above", 60)
    return (f"{steady}\nThe same, but after 60 events in each file a line comes to its top, so that all behind it is evaluated again (`--above 60`):\n\n"
            f"{above}\nFiles: {names}. A window has at most {tokens} tokens.\n")


def heads(options):
    """What the declarations of other files are worth, bundled model: `efimd-bench heads --count 70`"""
    return block(bench("heads", *options.projects, "--count", 70, model=BUNDLED))


def drafts(options):
    """What recall's drafts spare while a suggestion is generated, bundled model: `efimd-bench places --drafts --count 60`"""
    return block(bench("places", *options.projects, "--drafts", "--count", 60, model=BUNDLED))


def opening(options):
    """Whether keys are answered later while a project is read, bundled model: `efimd-bench opening PROJECT --rounds 15`"""
    return block(bench("opening", options.large, "--rounds", 15, model=BUNDLED))


def visits_of(clone, folder):
    """A trace of one author in CLONE or CLONE=AUTHOR: its path, and the visits and returns in it."""
    clone, _, author = clone.partition("=")
    author = author or said(["git", "-C", clone, "shortlog", "-sn", "--no-merges", "HEAD"]).splitlines()[0].split("\t")[1]
    path = pathlib.Path(folder, f"{pathlib.Path(clone).name}-{len(list(pathlib.Path(folder).iterdir()))}.csv")
    path.write_text(said(["python3", "tests/bench/traces/from_git.py", clone, "--author", author]), encoding="utf-8")
    files = [number for line in path.read_text(encoding="utf-8").splitlines()[1:] for number in line.split(",")[1::2]]
    return path, len(files), len(files) - len(set(files))


def orders_table(traces, rooms, *more):
    """What three orders of eviction keep in memory of all traces together, by the room for tokens."""
    orders = ("oldest", "returns", "best")
    found = [trace for trace in json.loads(bench("returns", *traces, "--room", ",".join(map(str, rooms)), *more, "--json")) if trace["tier"] == "memory"]
    rows = []
    for room in rooms:
        of_room = [trace for trace in found if trace["capacityTokens"] == room]
        def shares(part, whole):
            return ", ".join(f"{100 * sum(trace[order][part] for trace in of_room) / whole:.1f}" for order in orders) + " %"
        rows.append([f"{room // 1024}k", shares("whole", sum(trace["returnCount"] for trace in of_room)),
                     shares("anew", sum(trace["tokens"] for trace in of_room))])
    return table(["room for tokens, in memory", f"returns whose KV was all there: {', '.join(orders)}",
                  f"their tokens that were evaluated anew: {', '.join(orders)}"], rows)


def authors(options):
    """What is still there when authors return to files, by the commits of one in each clone: `efimd-bench returns`"""
    with tempfile.TemporaryDirectory() as folder:
        traces = [visits_of(clone, folder) for clone in options.clones]
        paths = [path for path, _, _ in traces]
        tables = (orders_table(paths, [2**n * 1024 for n in (5, 6, 7, 8, 9)])
                  + "\nWhere after 20 visits 20 files are looked into once (`--looks 20`):\n\n"
                  + orders_table(paths, [2**n * 1024 for n in (5, 7, 9)], "--looks", 20))
    names = ", ".join(pathlib.Path(clone).name for clone in options.clones)
    return tables + f"\nClones: {names}; {sum(visits for _, visits, _ in traces):,} visits, {sum(again for _, _, again in traces):,} of them returns.\n"


def returns(_):
    """What is still there when a user returns to a file: `efimd-bench returns tests/bench/traces/*.csv`"""
    return block(bench("returns", *sources("tests/bench/traces/*.csv"), model=BUNDLED))


def warming(_):
    """What packed steps and a shared head are worth for several files, bundled model: `efimd-bench warming`"""
    return block(bench("warming", BUNDLED))
