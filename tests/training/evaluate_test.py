"""Evaluation: cursors, measures, baselines, the sandbox, and what is said where something is wrong."""
import gzip
import json
import unittest

import support
from private_daemon import small_model
from support import records, training

from training import baselines, cursors, humaneval, measures, places, sandbox
from training.errors import TrainingError

TEXT = """import os


def first(path):
    with open(path) as file:
        return file.read()


def second(path):
    with open(path) as file:
        return file.readline()
"""
RECORD = {"path": "a.py", "language": "python", "package": "p", "licence": "MIT", "text": TEXT}


def cursor(marked: str) -> cursors.Cursor:
    """`^` is the cursor, `|` the beginning of what was typed."""
    before, rest = marked.split("^")
    before, increment = before.split("|")
    line, _, after = rest.partition("\n")
    return cursors.Cursor("a.py", "python", "", before, increment, line, after, "")


class Cursors(unittest.TestCase):
    def test_a_cursor_and_its_parts_are_the_file(self):
        for kind in ("random", "line"):
            for drawn in cursors.draw([RECORD], kind, 200, seed=1):
                self.assertEqual(drawn.with_text(drawn.rest), TEXT)
                self.assertTrue(drawn.rest.strip())
                self.assertLessEqual(drawn.increment.count("\n"), cursors.LINES_TYPED_MAX)
                self.assertTrue(drawn.before == "" or drawn.before.endswith("\n"))
                if kind == "line":
                    self.assertEqual(drawn.typed_line, "")

    def test_the_same_seed_draws_the_same(self):
        self.assertEqual(cursors.draw([RECORD], "random", 20, 1), cursors.draw([RECORD], "random", 20, 1))
        self.assertNotEqual(cursors.draw([RECORD], "random", 20, 1), cursors.draw([RECORD], "random", 20, 2))

    def test_every_language_gets_as_many(self):
        other = {**RECORD, "language": "go"}
        drawn = cursors.draw([RECORD] * 30 + [other], "line", 100, 1)
        self.assertAlmostEqual(sum(one.language == "go" for one in drawn), 50, delta=10)


class Places(support.TrainingTest):
    def test_test_packages_are_unpacked_each_into_its_folder(self):
        corpus = self.make_corpus()
        folders = places.unpacked(corpus, self.folder / "projects")
        self.assertEqual([folder.name for folder in folders], ["cache_store", "scripts"])
        for record in records(corpus / "test.jsonl"):
            folder = next(folder for folder in folders if record["package"].endswith("/" + folder.name))
            self.assertEqual((folder / record["path"]).read_text(), record["text"])

    def test_a_later_corpus_and_packages_of_one_name_have_folders_of_their_own(self):
        def write(*packages_and_texts):
            lines = [json.dumps({**RECORD, "package": package, "text": text}) for package, text in packages_and_texts]
            (self.folder / "test.jsonl").write_text("\n".join(lines) + "\n")
            return places.unpacked(self.folder, self.folder / "projects")
        for texts in (("a = 1\n", "b = 2\n"), ("c = 3\n", "d = 4\n")):
            folders = write(("/one/src", texts[0]), ("/two/src", texts[1]))
            self.assertEqual([(folder / "a.py").read_text() for folder in folders], list(texts))
        (self.folder / "test.jsonl").write_text("")
        with self.assertRaises(TrainingError):
            places.unpacked(self.folder, self.folder / "projects")

    def test_a_path_that_leads_out_is_refused(self):
        (self.folder / "test.jsonl").write_text(json.dumps({**RECORD, "path": "../../a.py"}) + "\n")
        with self.assertRaises(TrainingError):
            places.unpacked(self.folder, self.folder / "projects")

    @unittest.skipUnless(support.BENCH, "without efimd-bench")
    def test_what_the_daemon_shows_is_counted_without_recall(self):
        said = training("evaluate", "--corpus", self.make_corpus(), "--model", f"boot={small_model(support.BENCH)}", "--cursors",
                        "20", "--kinds", "places", "--bench", support.BENCH, "--out", self.folder / "out").stdout
        self.assertIn("**20 places of each kind", said)
        result = json.loads((self.folder / "out/results.json").read_text())["places"]["boot"]
        self.assertEqual({kind: of["cursors"] for kind, of in result.items()}, {"inside": 20, "start": 20, "finished": 20})
        self.assertEqual(sum(of["fromRecall"] for of in result.values()), 0)
        self.assertGreater(result["inside"]["shown"], 0)


class Measures(unittest.TestCase):
    def test_exact_minds_blanks_at_the_end_alone(self):
        self.assertTrue(measures.exact("a + b  ", "a + b"))
        self.assertFalse(measures.exact(" a + b", "a + b"))

    def test_a_word_is_finished_or_not_or_there_is_none(self):
        self.assertIs(measures.word_exact("urn x", "    ret", "urn value"), True)
        self.assertIs(measures.word_exact("urns", "    ret", "urn value"), False)
        self.assertIsNone(measures.word_exact("x", "    return ", "value"))
        self.assertIsNone(measures.word_exact("(x)", "    call", "(value)"))

    def test_similarity_is_one_minus_the_share_of_edits(self):
        self.assertEqual(measures.similarity("kitten", "kitten"), 1)
        self.assertAlmostEqual(measures.similarity("sitting", "kitten"), 1 - 3 / 7)
        self.assertEqual(measures.similarity("", "abc"), 0)

    def test_intervals_are_those_of_the_tables(self):
        low, high = measures.wilson(10, 100)
        self.assertAlmostEqual(low, 0.0552, delta=1e-3)
        self.assertAlmostEqual(high, 0.1744, delta=1e-3)
        self.assertEqual(measures.wilson(0, 0), (0.0, 1.0))
        value, half = measures.mean_and_interval([0, 1] * 50)
        self.assertAlmostEqual(value, 0.5)
        self.assertAlmostEqual(half, 1.96 * 0.5025 / 10, delta=1e-3)

    def test_python_is_parsed_with_the_text_in_it(self):
        place = cursor("def f(x):\n|    return ^x + 1\n")
        self.assertIs(measures.parses(place, "x * 2"), True)
        self.assertIs(measures.parses(place, "(x"), False)


class Baseline(unittest.TestCase):
    def test_the_line_with_the_most_similar_line_before_it_is_repeated(self):
        place = cursor(TEXT.replace("|", "").replace("        return file.readline()\n", "|        ret^urn file.readline()\n"))
        self.assertEqual(baselines.similar_line(place), "urn file.read()")

    def test_nothing_is_said_where_no_line_begins_alike(self):
        self.assertEqual(baselines.similar_line(cursor("a = 1\n|zebra^ = 2\n")), "")


class Sandbox(unittest.TestCase):
    def test_programs_pass_fail_or_take_too_long(self):
        self.assertEqual(sandbox.run("assert 1 + 1 == 2"), "passed")
        self.assertEqual(sandbox.run("assert 1 + 1 == 3"), "failed")
        self.assertEqual(sandbox.run("syntax error"), "failed")
        self.assertIn(sandbox.run("while True: pass"), ("failed", "timed out"))  # by CPU time or by the clock

    def test_memory_files_and_the_environment_are_limited(self):
        self.assertEqual(sandbox.run("x = bytearray(4 << 30)"), "failed")
        self.assertEqual(sandbox.run("open('big', 'wb').write(b'x' * (8 << 20))"), "failed")
        self.assertEqual(sandbox.run("import os; assert 'HOME' not in os.environ and os.listdir('.') == []"), "passed")

    def test_there_is_no_network_where_the_kernel_allows_that(self):
        if not sandbox.apart():
            self.skipTest("an ordinary user may not leave the network here")
        self.assertEqual(sandbox.run("import socket\nassert [name for _, name in socket.if_nameindex()] == ['lo']"), "passed")

    def test_what_a_program_leaves_running_is_ended(self):
        self.assertEqual(sandbox.run("import subprocess; subprocess.Popen(['sleep', '300'])"), "passed")


TASK = {"task_id": "t/0", "entry_point": "add", "prompt": "def add(a, b):\n    ret", "suffix": "\n", "canonical_solution": "urn a + b",
        "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n"}


class HumanEval(support.TrainingTest):
    def test_a_task_is_solved_by_what_makes_its_tests_pass(self):
        self.assertTrue(humaneval.solved(TASK, "urn a + b"))
        self.assertFalse(humaneval.solved(TASK, "urn a - b"))

    def test_its_cursor_has_the_line_typed(self):
        self.assertEqual(humaneval.cursor_of(TASK), {"before": "def add(a, b):\n", "increment": "    ret", "after": "\n"})

    def test_plain_and_packed_files_are_read_and_others_refused(self):
        plain, packed = self.folder / "tasks.jsonl", self.folder / "tasks.jsonl.gz"
        plain.write_text(json.dumps(TASK) + "\n")
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        self.assertEqual(humaneval.read(plain), humaneval.read(packed))
        for content, what in (("{}\n", "is no HumanEval-Infilling file"), ("", "has no tasks"), ("x", "is no HumanEval-Infilling file")):
            plain.write_text(content)
            said = self.refused("evaluate", "--corpus", self.make_corpus(), "--model", f"a={small_model(support.BENCH)}",
                                "--cursors", "1", "--bench", support.BENCH, "--humaneval", plain, "--out", self.folder / "out")
            self.assertIn(what, said)


class Evaluate(support.TrainingTest):
    def evaluate(self, *more, **options):
        return training("evaluate", "--corpus", self.make_corpus(), "--model", f"bundled={small_model(support.BENCH)}",
                        "--cursors", "12", "--bench", support.BENCH, "--out", self.folder / "out", *more, **options)

    def test_every_form_is_measured_at_the_same_cursors_and_answers_are_kept(self):
        tasks = self.folder / "single-line.jsonl"
        tasks.write_text(json.dumps(TASK) + "\n")
        # What is shown at places depends on the time that there was for it.
        first = self.evaluate("--humaneval", tasks, "--kinds", "random", "line")
        for title in ("most similar earlier line", "bundled, PSM", "bundled, EFIM", "bundled, EFIM + healing"):
            self.assertEqual(first.stdout.count(f"| {title} |"), 2 if title.startswith("most") else 3, title)
        answers = records(self.folder / "out/bundled-random.jsonl")
        self.assertEqual(len(answers), 1 + 3 * 12)
        self.assertGreater(sum(answer["generatedTokens"] for answer in answers[1:]), 0)
        # A file that is not asked again does not change, so neither does what is printed of it.
        again = self.evaluate("--humaneval", tasks, "--kinds", "random", "line")
        self.assertEqual(first.stdout, again.stdout)
        results = json.loads((self.folder / "out/results.json").read_text())
        self.assertEqual(len(results["cursors"]["random"]["bundled, EFIM"]["exact"]), 12)

    def test_bad_input_is_refused(self):
        corpus, out = self.make_corpus(), self.folder / "out"
        self.assertIn("is no file", self.refused("evaluate", "--corpus", corpus, "--model", "a=none.gguf", "--out", out))
        self.assertIn("NAME=FILE.gguf is wanted", self.refused("evaluate", "--corpus", corpus, "--model", "none.gguf", "--out", out))
        self.assertIn("another model has the name a", self.refused("evaluate", "--corpus", corpus, "--model", f"a={__file__}", "--model",
                                                                   f"a={__file__}", "--out", out))
        bad = self.folder / "bad.gguf"
        bad.write_text("nothing")
        self.assertIn("bad.gguf", self.refused("evaluate", "--corpus", corpus, "--model", f"a={bad}", "--cursors", "2", "--bench", support.BENCH,
                                               "--out", out))
        self.assertIn("build it", self.refused("evaluate", "--corpus", corpus, "--model", f"a={bad}", "--cursors", "2", "--bench", "none", "--out",
                                               out))
        (self.folder / "test.jsonl").write_text("")
        self.assertIn("too little code", self.refused("evaluate", "--corpus", self.folder, "--model", f"a={bad}", "--cursors", "2", "--out", out))


if __name__ == "__main__":
    unittest.main()
