"""Fits the weights of daemon/recall/chance_table.h to places in training packages.

    recall_places --count 200 --dump places.txt PROJECT...       # of training packages alone
    python3 -m training.fit_recall places.txt > daemon/recall/chance_table.h
    efimd-bench places --count 60 --dump judged.txt PROJECT...   # the same, with the bundled model
    python3 -m training.fit_recall --judged judged.txt > daemon/completion/answer/judged_chance_table.h
    python3 -m training.fit_recall --drafts judged.txt > daemon/completion/answer/draft_table.h
    recall_places --count 300 --dump-next next.txt PROJECT...    # the lines under a candidate
    python3 -m training.fit_recall --next next.txt > daemon/recall/next_table.h

Each line of places.txt is a boundary of a candidate; its label is whether the text before it is what stood there. For each kind of
place a small network is fitted (recall_net.py), for other tables a logistic regression with a little shrinking. Then the cuts are
chosen that save most characters, among those with few enough wrong suggestions. The result is printed on stderr.
"""
import argparse
import re
import sys
from pathlib import Path

import numpy as np

from training import recall_net

PLACES = ["inside", "start", "finished"]
COLUMNS = ["place", "kind", "cursor", "truth", "candidate", "text", "right", "bytes"]
# Of the suggestions shown, how many may be wrong from the first character; at finished lines, how many cursors may show one.
RECALL_LIMITS = {"wrong": {0: 0.08, 1: 0.21}, "finished": 0.055}
FOLDS = 6
# By place. Behind finished lines few are right, and a network says of others no better than the straight sum.
EPOCHS_AND_DECAY = [(8, 0.05), (8, 0.05), (0, 0)]
JUDGED_LIMITS = {"wrong": {0: 0.12, 1: 0.185}, "finished": 0.035}


def read(path: str) -> tuple:
    """(columns by name, features); cursors that no candidate was found for are counted in `silent`."""
    rows, silent = [], {0: 0, 1: 0, 2: 0}
    chars = {0: 0, 1: 0, 2: 0}
    cursors = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            fields = line.split()
            cursors[int(fields[2])] = (int(fields[1]), int(fields[3]))
            if fields[4] != "-1":
                rows.append([float(field) for field in fields])
    for kind, truth in cursors.values():
        silent[kind] += 1
        chars[kind] += truth
    table = np.array(rows)
    return {name: table[:, i].astype(int) for i, name in enumerate(COLUMNS)}, table[:, len(COLUMNS):], silent, chars


def labels(columns: dict) -> np.ndarray:
    """Right as far as the boundary; at the end of the candidate, the line must end there, too."""
    right = columns["right"] >= columns["bytes"]
    last = columns["bytes"] == columns["text"]
    return (right & (~last | (columns["truth"] == columns["text"]))).astype(float)


def logistic(features: np.ndarray, labels_: np.ndarray, weights: np.ndarray, shrink: float = 1.0) -> np.ndarray:
    """Newton's method; about ten steps. `weights` of samples: a cursor counts once, however many boundaries it has."""
    fitted = np.zeros(features.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-np.clip(features @ fitted, -30, 30)))
        gradient = features.T @ (weights * (labels_ - chance)) - shrink * fitted
        curve = (features * (weights * chance * (1 - chance))[:, None]).T @ features + shrink * np.eye(len(fitted))
        step = np.linalg.solve(curve, gradient)
        fitted += step
        if np.abs(step).max() < 1e-6:
            break
    return fitted


class Cursor:
    """The candidates of one cursor: for each, its boundaries' chances and bytes, and how much of it is right."""

    def __init__(self, kind: int, place: int, truth: int):
        self.kind, self.place, self.truth = kind, place, truth
        self.candidates = []

    def shown(self, show: float, hold: float):
        """(bytes shown, bytes right, whole candidate right) of the best candidate as vote.cpp takes it; None: silent."""
        for _, text, right, bytes_, chances in self.candidates:
            if chances[0] < show:
                continue
            held = np.flatnonzero(chances >= hold)
            if len(held):
                shown = bytes_[held[-1]]
                return shown, min(shown, right), shown == self.truth and right >= shown
        return None


def cursors_of(columns: dict, chance: np.ndarray) -> list:
    keys = columns["cursor"] * 1000 + columns["candidate"]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    ends = np.append(starts[1:], len(keys))
    found = {}
    for begin, end in zip(starts, ends):
        cursor = found.setdefault(columns["cursor"][begin], Cursor(columns["kind"][begin], columns["place"][begin], columns["truth"][begin]))
        chances = np.minimum.accumulate(chance[begin:end])
        bytes_ = columns["bytes"][begin:end]
        # As worth_of() in vote.cpp.
        gain = float((chances * np.diff(bytes_, prepend=0)).sum() + 3 * chances[-1] * (bytes_[-1] + 4))
        cursor.candidates.append((gain, columns["text"][begin], columns["right"][begin], bytes_, chances))
    for cursor in found.values():
        cursor.candidates.sort(key=lambda candidate: -candidate[0])
    return list(found.values())


def outcome(cursors: list, cuts: list) -> dict:
    """Per kind: shown, exact, bytes saved, wrong from the first byte."""
    result = {kind: np.zeros(4) for kind in range(3)}
    for cursor in cursors:
        shown = cursor.shown(*cuts[cursor.place])
        if shown is not None:
            result[cursor.kind] += [1, shown[2], shown[1], shown[1] == 0]
    return result


def choose_cuts(cursors: list, count: dict, limits: dict) -> list:
    """Greedy over places: inside and finished share the cursors at finished lines."""
    grid = [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9]
    holds = [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5]
    by_place = [[cursor for cursor in cursors if cursor.place == place] for place in range(3)]
    silent = (2.0, 2.0)
    best = [silent, silent, (0.9, 0.5)]
    for place, allowed in ((0, limits["finished"] * 0.75), (1, 1.0), (2, limits["finished"] * 0.25)):
        top = -1.0
        for show in grid:
            for hold in holds:
                if hold > show:
                    continue
                cuts = [silent] * 3
                cuts[place] = (show, hold)
                got = outcome(by_place[place], cuts)
                kind = 1 if place == 1 else 0
                shown, exact, saved, wrong = got[kind]
                if wrong > limits["wrong"][kind] * shown or got[2][0] > allowed * count[2]:
                    continue
                value = exact / max(1, count[kind]) + saved / max(1, sum(c.truth for c in cursors if c.kind == kind))
                if value > top:
                    top, best[place] = value, (show, hold)
    return best


def rows_of(weights: list) -> str:
    return ",\n    ".join("{{" + ", ".join(f"{value:.4g}" for value in row) + "}}" for row in weights)


def cuts_of(cuts: list) -> str:
    return ", ".join(f"{{{show:.2f}, {hold:.2f}}}" for show, hold in cuts)


def net_of(net: recall_net.Net) -> str:
    straight, hidden, out = net.parts
    rows = ",\n        ".join(numbers(row) for row in hidden)
    return f"""{{
        {numbers(straight)},
        {{{{
        {rows},
        }}}},
        {numbers(out)},
    }}"""


def numbers(values: np.ndarray) -> str:
    return "{{" + ", ".join(f"{value:#.4g}F" for value in values) + "}}"


def table(nets: list, cuts: list, command: str) -> str:
    written = ",\n    ".join(net_of(net) for net in nets)
    return f"""#pragma once

#include <array>

#include "daemon/recall/chance.h"

// Written by training/fit_recall.py, from places in the training packages that stand there. Nets
// follow Place, columns of straight and rows of hidden follow features_of().
// {command}
namespace efimd::recall {{

// clang-format off
inline constexpr std::array<ChanceNet, 3> kChanceNets = {{{{
    {written},
}}}};
// clang-format on

inline constexpr std::array<Cut, 3> kCuts = {{{{{cuts_of(cuts)}}}}};

}}  // namespace efimd::recall
"""


class Boundaries:
    """Lines "B": a candidate's boundaries, of which the model judged the first ones, too."""

    def __init__(self, lines: list):
        table = np.array([line[:8] for line in lines]).astype(int)
        self.columns = dict(zip(COLUMNS, table.T))
        self.recalled = np.array([line[8] for line in lines])
        self.features = [line[9:] or None for line in lines]
        keys = self.columns["cursor"] * 1000 + self.columns["candidate"]
        self.begins = np.diff(keys, prepend=-1) != 0  # a candidate

    def rows(self, kept: np.ndarray | None = None) -> np.ndarray:
        """For fit_by_place(): those that the model judged."""
        label = labels(self.columns)
        found = [[self.columns["place"][row], self.columns["cursor"][row], label[row]] + self.features[row]
                 for row in range(len(self.features)) if self.features[row] and (kept is None or kept[row])]
        return np.array(found)


def read_judged(path: str) -> tuple:
    """(boundaries, what the model wrote as rows of (place, cursor, label, features), cursors of each kind)"""
    judged, written, count = [], [], {0: 0, 1: 0, 2: 0}
    with open(path, encoding="ascii") as lines:
        for kind, *fields in (line.split() for line in lines if line[0] in "BQW"):
            values = [float(field) for field in fields]
            if kind == "Q":
                count[int(values[0])] += 1
            elif kind == "B":
                judged.append(values)
            else:
                place, _, cursor, _, bytes_, right = values[:6]
                written.append([place, cursor, right / bytes_] + values[6:])
    return Boundaries(judged), np.array(written), count


def read_cuts() -> list:
    """Those of recall alone, as they are now."""
    table_ = (Path(__file__).parent.parent / "daemon/recall/chance_table.h").read_text(encoding="ascii")
    values = re.findall(r"[0-9.]+", table_[table_.index("kCuts"):])[-6:]
    return [(float(show), float(hold)) for show, hold in zip(values[::2], values[1::2])]


def samples_of(rows: np.ndarray, place: int) -> tuple:
    """(cursors, labels, features, weights) of a place: four boundaries of a cursor count as much as forty."""
    here = rows[rows[:, 0] == place]
    _, inverse, number = np.unique(here[:, 1], return_inverse=True, return_counts=True)
    return here[:, 1], here[:, 2], here[:, 3:], 4.0 / np.maximum(4, number[inverse])


def fit_by_place(name: str, rows: np.ndarray) -> list:
    """Weights for each place; what a held-out half of the cursors says of them is printed on stderr."""
    weights = []
    for place in range(3):
        cursors, label, features, sample = samples_of(rows, place)
        half = cursors % 2 == 0
        tried = logistic(features[half], label[half], sample[half])

        def loss(chance: np.ndarray) -> float:
            chance = np.clip(chance, 1e-4, 1 - 1e-4)
            kept = ~half
            return float(-(label[kept] * np.log(chance) + (1 - label[kept]) * np.log(1 - chance)).mean())

        said = 1 / (1 + np.exp(-(features[~half] @ tried)))
        alone = 1 / (1 + np.exp(-features[~half][:, 1])) if features.shape[1] > 3 else np.exp(features[~half][:, 1])
        print(f"{name}, {PLACES[place]}: {len(label)} rows of {len(np.unique(cursors))} cursors, right {label.mean():.3f}, said {said.mean():.3f}, "
              f"loss of the held-out half {loss(said):.3f}, before {loss(alone):.3f}", file=sys.stderr)
        # Where the held-out half is not said better, what was said before stays.
        unchanged = np.eye(1, features.shape[1], 1)[0]
        weights.append(logistic(features, label, sample) if loss(said) < loss(alone) else unchanged)
    return weights


def judged_table(judged: list, cuts: list, written: list, command: str) -> str:
    return f"""#pragma once

#include <array>

#include "daemon/completion/answer/judged_chance.h"
#include "daemon/recall/chance.h"

// Written by training/fit_recall.py --judged, from places in projects that the model has not seen
// (training/README.md). Rows follow recall::Place, columns judged_boundaries() and
// written_features().
// {command}
namespace efimd::completion {{

// clang-format off
inline constexpr std::array<std::array<double, kJudgedFeatures>, 3> kJudgedWeights = {{{{
    {rows_of(judged)},
}}}};
inline constexpr std::array<std::array<double, kWrittenFeatures>, 3> kWrittenWeights = {{{{
    {rows_of(written)},
}}}};
inline constexpr std::array<recall::Cut, 3> kJudgedCuts = {{{{{cuts_of(cuts)}}}}};
// clang-format on

}}  // namespace efimd::completion
"""


def judged_chances(boundaries: Boundaries, weights: list) -> np.ndarray:
    """Of each boundary, as with_model() in judged_chance.cpp."""
    chances = np.empty(len(boundaries.recalled))
    chance = before = 1.0
    for row, (recalled, features) in enumerate(zip(boundaries.recalled, boundaries.features)):
        if boundaries.begins[row]:
            chance = before = 1.0
        if features is None:
            chance *= min(1.0, recalled / max(1e-6, before))
        else:
            odds = float(np.dot(features, weights[boundaries.columns["place"][row]]))
            chance = min(chance, 1 / (1 + np.exp(-np.clip(odds, -30, 30))))
        before = recalled
        chances[row] = chance
    return chances


def fit_judged(path: str) -> None:
    boundaries, written, count = read_judged(path)
    cursors = len(np.unique(np.concatenate([boundaries.columns["cursor"], written[:, 1].astype(int)])))
    weights = fit_by_place("judged", boundaries.rows())
    # Cuts are chosen over chances that were fitted to the other half of the cursors.
    half = boundaries.columns["cursor"] % 2 == 0
    chances = np.empty(len(half))
    for kept in (half, ~half):
        others = [samples_of(boundaries.rows(~kept), place) for place in range(3)]
        fitted = [logistic(features, label, sample) for _, label, features, sample in others]
        chances[kept] = judged_chances(boundaries, fitted)[kept]
    judged = cursors_of(boundaries.columns, chances)
    cuts = choose_cuts(judged, count, JUDGED_LIMITS)
    for name, found, its_cuts in (("recall alone", cursors_of(boundaries.columns, boundaries.recalled), read_cuts()), ("judged", judged, cuts)):
        for kind, (shown, exact, saved, wrong) in outcome(found, its_cuts).items():
            print(f"{name}, {PLACES[kind]}: {count[kind]} cursors, shown {shown:.0f}, exact {exact:.0f}, bytes {saved:.0f}, wrong {wrong:.0f}", file=sys.stderr)
    print(judged_table(weights, cuts, fit_by_place("written", written), f"{cursors} cursors with a candidate or a text of the bundled model."), end="")


def next_table(weights: np.ndarray, command: str) -> str:
    row = ", ".join(f"{value:.4g}" for value in weights)
    return f"""#pragma once

#include <array>

#include "daemon/recall/candidate.h"

// Written by training/fit_recall.py --next, from places in the training packages. Columns follow
// next_lines.cpp.
// {command}
namespace efimd::recall {{

// clang-format off
inline constexpr std::array<double, kNextFeatures> kNextWeights = {{{{{row}}}}};
// clang-format on

}}  // namespace efimd::recall
"""


def fit_next(path: str) -> None:
    """Lines "cursor number right features...": a line under a candidate, after lines that were right."""
    rows = np.loadtxt(path)
    label, features, half = rows[:, 2], rows[:, 3:], rows[:, 0] % 2 == 0
    sample = 1.0 / np.sqrt(rows[:, 1])
    tried = logistic(features[half], label[half], sample[half])
    kept = ~half

    def loss(chance: np.ndarray) -> float:
        chance = np.clip(chance, 1e-4, 1 - 1e-4)
        return float(-(label[kept] * np.log(chance) + (1 - label[kept]) * np.log(1 - chance)).mean())

    said = 1 / (1 + np.exp(-(features[kept] @ tried)))
    print(f"{len(label)} lines, right {label.mean():.3f}; of the held-out half {label[kept].mean():.3f}, said {said.mean():.3f}, "
          f"loss {loss(said):.3f}, of one chance for all {loss(np.full(kept.sum(), label[half].mean())):.3f}", file=sys.stderr)
    for low in (0.1, 0.3, 0.5, 0.7, 0.9):
        here = (said >= low - 0.1) & (said < low + 0.1)
        print(f"said {low - 0.1:.1f} to {low + 0.1:.1f}: {here.sum()} lines, right {label[kept][here].mean():.3f}", file=sys.stderr)
    lines = f"{len(label)} lines under {len(np.unique(rows[:, 0]))} candidates whose line was right."
    print(next_table(logistic(features, label, sample), lines), end="")


def drafts_table(weights: list, counts: list) -> str:
    return f"""#pragma once

#include <array>

#include "daemon/completion/answer/draft_chance.h"

// Written by training/fit_recall.py --drafts, from the same places as --judged: drafts that were
// looked up, and those in the prompt's step. Columns follow draft_chance.cpp.
// {counts[0]} and {counts[1]} drafted tokens, judged by the bundled model.
namespace efimd::completion {{

// clang-format off
inline constexpr std::array<std::array<double, kDraftFeatures>, 2> kDraftWeights = {{{{
    {rows_of(weights)},
}}}};
// clang-format on

}}  // namespace efimd::completion
"""


def fit_drafts(path: str) -> None:
    """Lines "D features... accepted" and "P features... accepted": a drafted token, those before it accepted."""
    weights, counts = [], []
    for name in "DP":
        with open(path, encoding="ascii") as lines:
            rows = np.array([[float(field) for field in line.split()[1:]] for line in lines if line[0] == name])
        features, label = rows[:, :-1], rows[:, -1]
        weights.append(logistic(features, label, np.ones(len(label))))
        counts.append(len(label))
        said = 1 / (1 + np.exp(-(features @ weights[-1])))
        likely = said > 0.5
        print(f"{name}: {len(label)} tokens, {label.mean():.3f} accepted; likely: {label[likely].mean():.3f}, said {said[likely].mean():.3f}", file=sys.stderr)
    print(drafts_table(weights, counts), end="")


def fit_recalled(path: str) -> None:
    columns, features, count, chars = read(path)
    label = labels(columns)
    _, inverse, number = np.unique(columns["cursor"], return_inverse=True, return_counts=True)
    sample = 8.0 / np.maximum(8, number[inverse])
    # Cursors come project by project: nearly all of what a part is judged by is fitted in other projects.
    part = columns["cursor"] * FOLDS // (columns["cursor"].max() + 1)

    def fitted(rows: np.ndarray, place: int) -> recall_net.Net:
        return recall_net.fit(features[rows], label[rows], sample[rows], logistic, *EPOCHS_AND_DECAY[place])

    nets, chance, straight = [], np.zeros(len(label)), np.zeros(len(label))
    for place in range(3):
        here = columns["place"] == place
        for held_out in range(FOLDS):
            kept, rest = here & (part != held_out), here & (part == held_out)
            chance[rest] = fitted(kept, place).chances(features[rest])
            straight[rest] = 1 / (1 + np.exp(-(features[rest] @ logistic(features[kept], label[kept], sample[kept]))))
        nets.append(fitted(here, place))

        def loss(said: np.ndarray) -> float:
            said = np.clip(said[here], 1e-4, 1 - 1e-4)
            losses = -(label[here] * np.log(said) + (1 - label[here]) * np.log(1 - said))
            return float((sample[here] * losses).sum() / sample[here].sum())

        print(f"{PLACES[place]}: {here.sum()} boundaries, right {label[here].mean():.3f}; held out: said {chance[here].mean():.3f}, "
              f"loss {loss(chance):.4f}, of a logistic regression {loss(straight):.4f}", file=sys.stderr)
    for name, said in (("straight", straight), ("net", chance)):
        cursors = cursors_of(columns, said)
        cuts = choose_cuts(cursors, count, RECALL_LIMITS)
        for kind, (shown, exact, saved, wrong) in outcome(cursors, cuts).items():
            print(f"{name}, {PLACES[kind]}: {count[kind]} cursors, shown {100 * shown / count[kind]:.1f} %, exact {100 * exact / count[kind]:.1f} %, "
                  f"characters {100 * saved / max(1, chars[kind]):.1f} %, wrong {100 * wrong / max(1, shown):.1f} % of shown", file=sys.stderr)
    print(table(nets, cuts, f"{count[0]} cursors inside lines, {count[1]} at starts, {count[2]} behind finished lines."), end="")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", help="what recall_places --dump wrote")
    parser.add_argument("--judged", action="store_true", help="places is what efimd-bench places --dump wrote")
    parser.add_argument("--next", action="store_true", help="places is what recall_places --dump-next wrote")
    parser.add_argument("--drafts", action="store_true", help="the same, for the chances of drafted tokens")
    arguments = parser.parse_args()
    for asked, fit in ((arguments.drafts, fit_drafts), (arguments.next, fit_next), (arguments.judged, fit_judged)):
        if asked:
            fit(arguments.places)
            return 0
    fit_recalled(arguments.places)
    return 0


if __name__ == "__main__":
    sys.exit(main())
