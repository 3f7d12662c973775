"""Export: what the GGUF holds is what the checkpoint held, and efimd reads it."""
import json
import subprocess
import unittest

import numpy
import support
from support import training

from training import checkpoint, gguf, gguf_reader, quantize


def unpack_q8_0(data: bytes):
    blocks = numpy.frombuffer(data, numpy.uint8).reshape(-1, 34)
    return (blocks[:, :2].copy().view("<f2").astype(numpy.float32) * blocks[:, 2:].view(numpy.int8)).reshape(-1)


def unpack_q5_0(data: bytes):
    blocks = numpy.frombuffer(data, numpy.uint8).reshape(-1, 22)
    low = numpy.concatenate([blocks[:, 6:] & 15, blocks[:, 6:] >> 4], 1)
    high = numpy.unpackbits(blocks[:, 2:6], axis=1, bitorder="little")
    return (blocks[:, :2].copy().view("<f2").astype(numpy.float32) * ((low | high << 4).astype(numpy.int16) - 16)).reshape(-1)


def unpack_q4_k(data: bytes):
    """By the format's description, group by group."""
    out = []
    for block in numpy.frombuffer(data, numpy.uint8).reshape(-1, 144):
        d, dmin = block[:4].copy().view("<f2").astype(numpy.float32)
        packed, codes = block[4:16], block[16:]
        for group in range(8):
            if group < 4:
                scale, least = packed[group] & 63, packed[group + 4] & 63
            else:
                scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4
                least = (packed[group + 4] >> 4) | (packed[group] >> 6) << 4
            part = codes[group // 2 * 32:group // 2 * 32 + 32]
            nibbles = part >> 4 if group % 2 else part & 15
            out.append(d * int(scale) * nibbles - dmin * int(least))
    return numpy.concatenate(out)


class Quantize(unittest.TestCase):
    def check(self, pack, unpack, levels: int):
        rows = numpy.random.default_rng(1).normal(size=(6, 512)).astype(numpy.float32)
        rows[0] = 0
        rows[1, :256] = 3.0
        back = unpack(pack(rows)).reshape(rows.shape)
        span = numpy.abs(rows).max()
        worst = numpy.abs(back - rows).max()
        self.assertLess(worst, 1.5 * 2 * span / levels)
        self.assertEqual(numpy.abs(back[0]).max(), 0)

    def test_values_come_back_within_a_step_of_their_type(self):
        self.check(quantize.q8_0, unpack_q8_0, 256)
        self.check(quantize.q5_0, unpack_q5_0, 32)
        self.check(quantize.q4_k, unpack_q4_k, 16)

    def test_rows_that_are_no_multiple_of_a_block_get_a_finer_type(self):
        for columns, kind, expected in ((256, "q4_k", gguf.Q4_K), (192, "q4_k", gguf.Q5_0), (192, "q8_0", gguf.Q8_0),
                                        (48, "q4_k", gguf.F16), (48, "q8_0", gguf.F16)):
            self.assertEqual(quantize.encoded(numpy.ones((2, columns), numpy.float32), kind)[0], expected)


class Export(support.TrainingTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.run_folder = cls.shared / "run"
        training("train", *cls.model_options(2), "--out", cls.run_folder)

    def export(self, kind: str, *more) -> str:
        out = self.folder / f"model-{kind}.gguf"
        training("export", "--model", self.run_folder, "--tokenizer", self.make_vocabulary(), "--type", kind, "--out", out, *more)
        return out

    def test_metadata_says_what_efimd_needs_to_know(self):
        metadata, _ = gguf_reader.read(self.export("f16", "--name", "efim test"))
        tokens = metadata["tokenizer.ggml.tokens"]
        for key, text in (("fim_pre", "<fim_prefix>"), ("fim_suf", "<fim_suffix>"), ("fim_mid", "<fim_middle>"), ("eos", "<eot>"),
                          ("fim_sep", "<file_sep>"), ("fim_rep", "<repo_name>")):
            self.assertEqual(tokens[metadata[f"tokenizer.ggml.{key}_token_id"]], text)
        self.assertIs(metadata["efim.fragment_trained"], True)
        self.assertIs(metadata["tokenizer.ggml.add_bos_token"], False)
        self.assertIs(metadata["tokenizer.ggml.add_space_prefix"], False)
        self.assertEqual(metadata["llama.context_length"], 64)
        self.assertEqual(len(tokens), len(metadata["tokenizer.ggml.scores"]))

    def test_a_model_with_fragments_may_ask_to_be_healed_all_the_same(self):
        metadata, _ = gguf_reader.read(self.export("f16", "--heal"))
        self.assertIs(metadata["efim.fragment_trained"], False)

    def test_a_model_says_that_it_knows_other_files_if_it_is_told_to(self):
        for more, expected in (((), False), (("--files",), True)):
            self.assertIs(gguf_reader.read(self.export("f16", *more))[0]["efim.repository_trained"], expected)

    def test_a_model_without_fragments_says_so(self):
        whole = self.make_samples("whole", "--fragment-share", "0")
        options = [str(word) for word in self.model_options(1)]
        options[options.index("--samples") + 1] = str(whole)
        training("train", *options, "--out", self.folder / "run")
        training("export", "--model", self.folder / "run", "--tokenizer", self.make_vocabulary(), "--out", self.folder / "m.gguf", "--type", "f16")
        self.assertIs(gguf_reader.read(self.folder / "m.gguf")[0]["efim.fragment_trained"], False)

    def test_what_was_exported_can_be_taken_back(self):
        before = checkpoint.load(self.run_folder / checkpoint.FILE)
        # Half a step, and for Q8_0 what its scale loses as F16 (at most 2^-11 of it, 127 times)
        for kind, bound in (("q8_0", (0.5 + 127 / 2048) / 127), ("f16", 0.5 / 1024)):
            training("take", "--gguf", self.export(kind), "--out", self.folder / "back", program=kind == "f16")
            after = checkpoint.load(self.folder / "back" / checkpoint.FILE)
            self.assertEqual(before["weights"].keys(), after["weights"].keys())
            for name, weight in before["weights"].items():
                most = weight.abs().max().item()
                self.assertLessEqual((weight - after["weights"][name]).abs().max().item(), 1.001 * bound * most, name)
        from training.vocabulary import open_vocabulary

        ours, again = open_vocabulary(self.make_vocabulary()), open_vocabulary(self.folder / "back/tokenizer.model")
        for text in ("def f(x):\n    return 12 * x\n", "  é 🙂\t<fim_prefix>", ""):
            self.assertEqual(ours.encode(text), again.encode(text))

    def test_efimd_reads_every_type(self):
        for kind, name in (("f16", "F16"), ("q8_0", "Q8_0"), ("q4_k", "Q")):  # rows of 64 and 96 are no multiple of Q4_K's 256
            ran = subprocess.run([support.EFIMD, "model", "info", str(self.export(kind)), "--json", "--no-speed"], capture_output=True, text=True, check=True)
            info = json.loads(ran.stdout)
            self.assertEqual((info["fim"]["order"], info["fragmentTrained"], info["vocabulary"], info["layers"]), ("psm", True, 1024, 2))
            self.assertIn(name, info["fileType"])

    def test_bad_input_is_refused(self):
        out = self.folder / "m.gguf"
        self.assertIn("--tokenizer is wanted", self.refused("export", "--model", self.run_folder, "--out", out))
        self.assertIn("is missing", self.refused("export", "--model", self.folder, "--tokenizer", self.make_vocabulary(), "--out", out))
        (self.folder / "cut.gguf").write_bytes(self.export("f16").read_bytes()[:5000])
        self.assertIn("is no GGUF file", self.refused("take", "--gguf", self.folder / "cut.gguf", "--out", self.folder / "x"))
        self.assertIn("is quantized", self.refused("take", "--gguf", self.export("q4_k"), "--out", self.folder / "x"))


if __name__ == "__main__":
    unittest.main()
