"""Parts of scripts/bench: the engine alone, and beside a peer. Each part returns its tables as Markdown, and its first line
of documentation says what is measured."""
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess

from bench_parts.harness import BUNDLED, RELEASE, ROOT, Failed, bench, block, markdown_of, model_of, said, sources, table

TYPES = ("Q8_0", "Q4_0", "Q4_K")
PROMPT, GENERATED = 512, 64  # as measure_speed() has them


def own_speed(path):
    """(prompt, generation), tokens/s."""
    return tuple(float(word) for word in bench("speed", path).split())


def peer_speed(peer, path):
    """(prompt, generation), tokens/s, of a llama-bench; generation behind the prompt's tokens where it can say so."""
    words = shlex.split(peer)
    common = [*words, "-m", path, "-t", os.cpu_count(), "-r", 1, "-o", "json"]
    prompt = json.loads(said([*common, "-p", PROMPT, "-n", 0], stderr=subprocess.DEVNULL))
    depth = "--n-depth" in subprocess.run([*words, "--help"], text=True, capture_output=True, check=False).stdout
    behind = ["-p", 0, "-n", GENERATED, "-d", PROMPT] if depth else ["-p", 0, "-n", 0, "-gp", f"{PROMPT},{GENERATED}"]
    generated = json.loads(said([*common, *behind], stderr=subprocess.DEVNULL))
    return prompt[0]["avg_ts"], generated[-1]["avg_ts"]


def npm_speed(path):
    """(prompt, generation), tokens/s, of the engine that the tests compare with."""
    if not (RELEASE / "peer/node_modules/node-llama-cpp").is_dir():
        subprocess.run(["tests/peer/install", "build/release"], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    words = said(["tests/peer/run", "build/release/peer", "tests/bench/peer_speed.mjs", path, os.cpu_count()])
    return tuple(float(word) for word in words.split())


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def speed(options):
    """A prompt of 512 tokens, and 64 generated after it; in turn, ratios as median (lowest-highest) of the pairs: `scripts/bench speed`"""
    peers = {shlex.split(peer)[0]: (peer, peer_speed) for peer in options.peer} or {"npm's": ("", npm_speed)}
    rows = []
    for weights in TYPES:
        path = model_of(weights)
        ours, theirs = [], {name: [] for name in peers}
        for _ in range(options.pairs):
            ours.append(own_speed(path))
            for name, (peer, measure) in peers.items():
                theirs[name].append(measure(peer, path) if peer else measure(path))
        for at, what in enumerate(("prompt", "generation")):
            cells = [weights, what, f"{statistics.median(pair[at] for pair in ours):.1f}"]
            for name in peers:
                cells.append(f"{statistics.median(pair[at] for pair in theirs[name]):.1f}")
                cells.append(spread([mine[at] / other[at] for mine, other in zip(ours, theirs[name])]))
            rows.append(cells)
    header = ["model", "tokens/s of", "efimd"]
    for number, name in enumerate(peers, 1):
        header += [f"peer {number}", "efimd : peer"]
    labels = "; ".join(f"peer {number}: {peer_name(name, peer)}" for number, (name, (peer, _)) in enumerate(peers.items(), 1))
    return table(header, rows) + f"\n{options.pairs} runs in turn; {labels}.\n"


def peer_name(name, peer):
    """What a llama-bench says it is, with the options that it was given."""
    if not peer:
        return "llama.cpp as node-llama-cpp has it, a portable build"
    said_itself = json.loads(said([*shlex.split(peer), "-m", BUNDLED, "-p", 8, "-n", 0, "-r", 1, "-o", "json"], stderr=subprocess.DEVNULL))[0]
    extra = shlex.join(shlex.split(peer)[1:])
    return f"{pathlib.Path(name).parent.name}/{pathlib.Path(name).name} {said_itself['build_commit']} {extra}".strip()


def steps(_):
    """What a step costs by its tokens, after 512 tokens in KV, ms: `efimd-bench steps`"""
    return markdown_of(bench("steps", *map(model_of, TYPES)))


def forms(_):
    """Steps from mapped weights and from panels, in turn: `efimd-bench forms`"""
    return "\n".join(f"{weights}:\n\n{markdown_of(bench('forms', model_of(weights)))}" for weights in TYPES)


def memory(_):
    """Read bandwidth by streams, prefetch and page size: `efimd-bench memory`"""
    return markdown_of(bench("memory"))


def operations(_):
    """Products of a matrix and some tokens, GB/s of weights, with this machine's best instructions: `efimd-bench operations`"""
    lines = bench("operations").splitlines(keepends=True)
    best = [line.split("|")[3] for line in lines if line.startswith("|")][-1]
    heads = [at for at, line in enumerate(lines) if line.startswith("| ---")]
    return markdown_of("".join(line for at, line in enumerate(lines) if not line.startswith("|") or at in heads or at + 1 in heads
                               or line.split("|")[3] == best))


def tokenizer(_):
    """Tokenizing this tree's code: `efimd-bench tokenizer`"""
    return markdown_of(bench("tokenizer", *sources("*.cpp", "*.h", "*.py", "*.lua", "*.ts"), "--vocabulary", BUNDLED))


def agreement(_):
    """Next-token distributions beside the peer's, mean KL divergence, the least and the most of the models: `scripts/bench agreement`"""
    done = subprocess.run(["tests/peer/run", "build/release/peer", "tests/peer/distributions.mjs", "build/release/tests/peer/peer_distributions"],
                          cwd=ROOT, text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failed(done.stdout.strip() or "the peer's distributions differ")
    found = {}
    for line in done.stdout.splitlines():
        if "mean KL" in line:
            for weights, divergence in re.findall(r"(\w+) (\d\.\de[-+]\d+)", line):
                found.setdefault(weights, []).append(divergence)
    return table(["weights", "models", "from", "to"],
                 [[weights, len(all), min(all, key=float), max(all, key=float)] for weights, all in found.items()])


def behind(_):
    """What a step costs behind 512, 4,096 and 8,192 tokens in KV, Q8_0, ms: `efimd-bench steps --behind`"""
    return "\n".join(f"Behind {tokens:,} tokens:\n\n{markdown_of(bench('steps', model_of('Q8_0'), '--behind', tokens))}"
                     for tokens in (512, 4_096, 8_192))
