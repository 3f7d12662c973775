"""Fine-tuning of checkpoints in Hugging Face's format, made here: llama with a sentencepiece vocabulary, qwen2 with tokenizer.json."""
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import unittest

import support
from support import training

import torch

from training import gguf_reader, hugging_face, safetensors, vocabulary

OURS = os.environ.get("EFIMD_OURS_BINARY", "")
WIDTH, LAYERS, HEADS, KV_HEADS, FEED_FORWARD = 64, 2, 4, 2, 96


def random_weights(size: int, qwen2: bool) -> dict:
    torch.manual_seed(3)
    draw = lambda *shape: torch.randn(*shape) * 0.05
    weights = {"model.embed_tokens.weight": draw(size, WIDTH), "model.norm.weight": 1 + draw(WIDTH)}
    if not qwen2:
        weights["lm_head.weight"] = draw(size, WIDTH)
    kv = WIDTH // HEADS * KV_HEADS
    for layer in range(LAYERS):
        own = f"model.layers.{layer}"
        for name, rows in (("q", WIDTH), ("k", kv), ("v", kv)):
            weights[f"{own}.self_attn.{name}_proj.weight"] = draw(rows, WIDTH)
            if qwen2:
                weights[f"{own}.self_attn.{name}_proj.bias"] = draw(rows)
        weights[f"{own}.self_attn.o_proj.weight"] = draw(WIDTH, WIDTH)
        for name, shape in (("gate", (FEED_FORWARD, WIDTH)), ("up", (FEED_FORWARD, WIDTH)), ("down", (WIDTH, FEED_FORWARD))):
            weights[f"{own}.mlp.{name}_proj.weight"] = draw(*shape)
        weights[f"{own}.input_layernorm.weight"] = 1 + draw(WIDTH)
        weights[f"{own}.post_attention_layernorm.weight"] = 1 + draw(WIDTH)
    return {name: weight.bfloat16() for name, weight in weights.items()}


def write_checkpoint(folder: pathlib.Path, size: int, qwen2: bool, **changes) -> None:
    folder.mkdir(exist_ok=True)
    config = {"architectures": ["Qwen2ForCausalLM" if qwen2 else "LlamaForCausalLM"], "vocab_size": size, "hidden_size": WIDTH,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "intermediate_size": FEED_FORWARD,
              "max_position_embeddings": 256, "rope_theta": 10000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu",
              "tie_word_embeddings": qwen2, **changes}
    (folder / "config.json").write_text(json.dumps(config))
    # As large models have it, in two files.
    weights = random_weights(size, qwen2)
    names = sorted(weights)
    safetensors.write(folder / "model-00001-of-00002.safetensors", {name: weights[name] for name in names[:5]}, {"format": "pt"})
    safetensors.write(folder / "model-00002-of-00002.safetensors", {name: weights[name] for name in names[5:]}, {"format": "pt"})


def write_byte_bpe(folder: pathlib.Path, split=vocabulary.QWEN2) -> int:
    """A tokenizer.json with 256 bytes, some merges and qwen2's FIM tokens; a word that no merges lead to, and a text that is always
    one token. Returns how many tokens it has."""
    letters = vocabulary.byte_letters()
    words = {letter: token for token, letter in enumerate(letters.values())}
    merges = []
    for left, right in (("r", "e"), ("re", "t"), ("u", "r"), ("ret", "ur"), ("retur", "n"), ("Ġ", "Ġ"), ("ĠĠ", "ĠĠ"), ("Ġ", "return")):
        merges.append(f"{left} {right}")
        words[left + right] = len(words)
    words["unled"] = len(words)
    special = ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|file_sep|>", "<|repo_name|>"]
    added = [{"id": len(words) + at, "content": text, "special": True} for at, text in enumerate(special)]
    added.append({"id": len(words) + len(added), "content": "<tool call>", "special": False})
    splits = [{"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False},
              {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]
    (folder / "tokenizer.json").write_text(json.dumps({
        "added_tokens": added, "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits},
        "model": {"type": "BPE", "vocab": words, "merges": merges}}))
    return len(words) + len(added)


def reference_logits(weights: dict, tokens: list, qwen2: bool):
    """The architecture once more, token by token and without the module under test: f64, no batches, no masks."""
    weights = {name: weight.double() for name, weight in weights.items()}
    norm = lambda x, weight: x / torch.sqrt((x * x).mean() + 1e-6) * weight
    head, keys, out = WIDTH // HEADS, [([], []) for _ in range(LAYERS)], None

    def rotate(x, position):
        half = head // 2
        angles = [position / 10000.0 ** (2 * i / head) for i in range(half)]
        return torch.stack([x[i] * math.cos(angles[i]) - x[i + half] * math.sin(angles[i]) for i in range(half)]
                           + [x[i + half] * math.cos(angles[i]) + x[i] * math.sin(angles[i]) for i in range(half)])
    for position, token in enumerate(tokens):
        x = weights["model.embed_tokens.weight"][token]
        for layer in range(LAYERS):
            own = lambda name: weights[f"model.layers.{layer}.{name}"]
            y = norm(x, own("input_layernorm.weight"))
            q, k, v = (own(f"self_attn.{name}_proj.weight") @ y + (own(f"self_attn.{name}_proj.bias") if qwen2 else 0) for name in "qkv")
            keys[layer][0].append([rotate(part, position) for part in k.split(head)])
            keys[layer][1].append(v.split(head))
            mixed = []
            for number, part in enumerate(q.split(head)):
                part, shared = rotate(part, position), number // (HEADS // KV_HEADS)
                scores = torch.stack([part @ row[shared] for row in keys[layer][0]]) / math.sqrt(head)
                mixed.append(sum(weight * row[shared] for weight, row in zip(scores.softmax(0), keys[layer][1])))
            x = x + own("self_attn.o_proj.weight") @ torch.cat(mixed)
            y = norm(x, own("post_attention_layernorm.weight"))
            gate = own("mlp.gate_proj.weight") @ y
            x = x + own("mlp.down_proj.weight") @ (gate * gate.sigmoid() * (own("mlp.up_proj.weight") @ y))
        out = norm(x, weights["model.norm.weight"])
    return weights["model.embed_tokens.weight" if qwen2 else "lm_head.weight"] @ out


class Finetune(support.TrainingTest):
    def llama(self, **changes) -> pathlib.Path:
        folder = self.folder / "llama"
        write_checkpoint(folder, 1024, qwen2=False, **changes)
        shutil.copyfile(self.make_vocabulary(), folder / "tokenizer.model")
        (folder / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": False}))
        return folder

    def qwen2(self) -> pathlib.Path:
        folder = self.folder / "qwen2"
        folder.mkdir()
        # More rows than tokens, as Qwen has them.
        write_checkpoint(folder, write_byte_bpe(folder) + 6, qwen2=True)
        return folder

    def llama3(self) -> pathlib.Path:
        folder = self.folder / "llama3"
        folder.mkdir()
        write_checkpoint(folder, write_byte_bpe(folder, vocabulary.LLAMA3), qwen2=False)
        return folder

    def samples(self, checkpoint: pathlib.Path) -> pathlib.Path:
        out = self.folder / "samples"
        training("samples", "--corpus", self.make_corpus(), "--tokenizer", checkpoint, "--context", "96", "--rows-max", "60", "--out", out)
        return out

    def finetune(self, checkpoint: pathlib.Path, *more, steps=12, rate="1e-3", program=False) -> pathlib.Path:
        out = self.folder / "tuned"
        training("finetune", "--model", checkpoint, "--samples", self.samples(checkpoint), "--out", out, "--steps", steps, "--rate", rate,
                 "--warmup", "2", "--batch", "4", "--threads", "1", "--device", "cpu", *more, program=program)
        return out

    def losses(self, out: pathlib.Path) -> list:
        from training import checkpoint

        return checkpoint.load(out / checkpoint.FILE)["losses"]

    def test_the_architectures_compute_what_their_definition_says(self):
        for folder, qwen2 in ((self.llama(), False), (self.qwen2(), True)):
            model, kind = hugging_face.load(folder)
            self.assertEqual(kind, torch.bfloat16)
            tokens = [5, 17, 200, 3, 99, 17]
            with torch.no_grad():
                found = model(torch.tensor([tokens]))[0, -1].double()
            wanted = reference_logits(random_weights(model.shape.vocabulary, qwen2), tokens, qwen2)
            self.assertLess((found - wanted).abs().max().item(), 1e-4)

    def test_a_llama_is_tuned_and_exported_with_its_key(self):
        source = self.llama()
        out = self.finetune(source, program=True)
        losses = self.losses(out)
        self.assertLess(sum(losses[-3:]), sum(losses[:3]) - 0.3)
        before, after = (hugging_face.load(folder)[0].state_dict() for folder in (source, out / "model"))
        self.assertTrue(all(not torch.equal(before[name], after[name]) for name in before if "norm" not in name))
        training("export", "--model", out / "model", "--type", "f16", "--out", self.folder / "tuned.gguf")
        metadata, tensors = gguf_reader.read(self.folder / "tuned.gguf")
        self.assertIs(metadata["efim.fragment_trained"], True)
        self.assertIs(metadata["tokenizer.ggml.add_bos_token"], False)
        self.assertIn("output.weight", tensors)

    def test_adapters_are_merged_and_change_matrices_alone(self):
        source = self.qwen2()
        out = self.finetune(source, "--lora", "4", rate="1e-2")
        losses = self.losses(out)
        self.assertLess(sum(losses[-3:]), sum(losses[:3]) - 0.1)
        before, after = (hugging_face.load(folder)[0].state_dict() for folder in (source, out / "model"))
        self.assertEqual(before.keys(), after.keys())
        changed = {name for name in before if not torch.equal(before[name], after[name])}
        self.assertEqual(changed, {name for name in before if "_proj.weight" in name})

    @unittest.skipUnless(OURS, "without the program that tokenizes as efimd does")
    def test_efimd_tokenizes_what_is_exported_as_training_did(self):
        chance = random.Random(4)
        pieces = ["return", " return", "unled", "<tool call>", "<|fim_prefix|>", "<fim_prefix>", "\n", "\n\n", "  ", "\t", "12", "3", "é", "語", "🙂",
                  "(", ");", "x", "Stack", "'s", "\r\n", "\u3000", "\x00", "ſ"]
        texts = ["".join(chance.choices(pieces, k=chance.randrange(1, 30))) for _ in range(300)]
        texts += [path.read_text() for path in sorted((support.ROOT / "training").glob("*.py"))[:10]]
        for folder in (self.llama(), self.qwen2(), self.llama3()):
            with self.subTest(folder=folder.name):
                file = self.folder / f"{folder.name}.gguf"
                training("export", "--model", folder, "--type", "f16", "--out", file)
                said = subprocess.run([OURS], input=json.dumps({"model": str(file), "texts": texts, "prompts": []}), capture_output=True, text=True, check=True)
                words = vocabulary.open_vocabulary(folder)
                for text, tokens in zip(texts, json.loads(said.stdout)["tokens"], strict=True):
                    self.assertEqual(words.encode(text), tokens, repr(text))

    def test_an_exported_qwen2_says_what_it_is(self):
        source = self.qwen2()
        training("export", "--model", source, "--type", "f16", "--out", self.folder / "qwen2.gguf")
        metadata, _ = gguf_reader.read(self.folder / "qwen2.gguf")
        self.assertEqual(metadata["tokenizer.ggml.pre"], "qwen2")
        self.assertIs(metadata["efim.fragment_trained"], False)
        info = json.loads(subprocess.run([support.EFIMD, "model", "info", str(self.folder / "qwen2.gguf"), "--json", "--no-speed"], capture_output=True,
                                         text=True, check=True).stdout)
        self.assertEqual((info["architecture"], info["fim"]["order"]), ("qwen2", "psm"))

    def test_a_run_resumes_and_refuses_other_adapters(self):
        source = self.qwen2()
        self.finetune(source, "--lora", "2", "--budget", "0.000001", steps=3)
        self.assertFalse((self.folder / "tuned/model").exists())
        self.assertIn("other weights were trained there", self.refused(
            "finetune", "--model", source, "--samples", self.folder / "samples", "--out", self.folder / "tuned", "--steps", "3", "--rate",
            "1e-3", "--warmup", "2", "--batch", "4", "--device", "cpu"))
        self.assertIn("other weights were trained there", self.refused(
            "finetune", "--model", source, "--samples", self.folder / "samples", "--out", self.folder / "tuned", "--steps", "3", "--rate",
            "1e-3", "--warmup", "2", "--batch", "4", "--device", "cpu", "--lora", "4"))
        self.finetune(source, "--lora", "2", steps=3)
        self.assertTrue((self.folder / "tuned/model/model.safetensors").exists())

    def test_adapters_learn_at_a_rate_of_their_own(self):
        from training import checkpoint

        source = self.qwen2()
        samples = self.samples(source)
        for more, rate in (([], 2e-5), (["--lora", "2"], 2e-4), (["--lora", "2", "--rate", "1e-3"], 1e-3)):
            out = self.folder / f"rate-{rate}"
            training("finetune", "--model", source, "--samples", samples, "--out", out, "--steps", "1", "--batch", "1", "--threads", "1", "--device",
                     "cpu", *more)
            self.assertEqual(checkpoint.load(out / checkpoint.FILE)["plan"]["rate"], rate)

    def test_byte_bpe_gives_its_text_back_and_reads_no_special_tokens(self):
        words = vocabulary.open_vocabulary(self.qwen2())
        for text in ("    return x\n", "naïve 🙂 \r\n\t", "<|fim_prefix|>", "", "a  b   c"):
            self.assertEqual(words.decode(words.encode(text)), text)
            self.assertNotIn(words.prefix, words.encode(text))
        self.assertEqual([words.tokens[token] for token in words.encode(" return")], ["Ġreturn"])
        self.assertEqual([words.tokens[token] for token in words.encode("x<tool call>y")], ["x", "<tool call>", "y"])
        self.assertEqual(words.decode(words.encode("x<tool call>y")), "x<tool call>y")
        self.assertEqual(len(words.encode("unled")), 5)
        llama3 = vocabulary.open_vocabulary(self.llama3())
        self.assertEqual([llama3.tokens[token] for token in llama3.encode("unled")], ["unled"])

    def test_no_part_of_a_text_gets_the_space_that_llamas_vocabulary_puts_in_front(self):
        import io

        import sentencepiece

        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter((support.ROOT / "training/samples.py").read_text().split("\n")), model_writer=model, model_type="bpe",
            vocab_size=600, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
            control_symbols=list(vocabulary.SYMBOLS), minloglevel=2)
        path = self.folder / "llama.model"
        path.write_bytes(model.getvalue())
        words = vocabulary.open_vocabulary(path)
        self.assertTrue(words.adds_space)
        for parts in (("ret", "urn x"), (" ", "a"), ("self", ".text\n"), ("", "\n\n")):
            ids = [token for part in parts for token in words.encode(part)]
            self.assertEqual("".join(words.tokens[token] for token in ids).replace("▁", " ").replace("<0x0A>", "\n"), "".join(parts))

    def refused_model(self, folder: pathlib.Path) -> str:
        return self.refused("finetune", "--model", folder, "--samples", self.make_samples(), "--out", self.folder / "tuned", "--steps", "1",
                            "--device", "cpu")

    def test_what_cannot_be_tuned_is_refused(self):
        for changes, what in (({"architectures": ["MixtralForCausalLM"]}, "MixtralForCausalLM"), ({"hidden_act": "gelu"}, "hidden_act"),
                              ({"rope_scaling": {"factor": 8}}, "rope_scaling"), ({"num_hidden_layers": 3}, "has no tensor"),
                              ({"intermediate_size": 128}, "config.json says"), ({"num_hidden_layers": 1}, "is no tensor of llama")):
            with self.subTest(changes=changes):
                self.assertIn(what, self.refused_model(self.llama(**changes)))
        self.assertIn("has no config.json", self.refused_model(self.folder))
        self.assertIn("which is not supported", self.refused_model(self.llama(rope_parameters={"rope_type": "yarn", "factor": 4})))

    def test_the_base_of_rotary_positions_is_read_where_transformers_5_writes_it(self):
        config = {**hugging_face.read_config(self.llama()), "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
        del config["rope_theta"]
        self.assertEqual(hugging_face.shape_of(config, "here").rope_base, 1e6)

    def test_damaged_files_of_a_checkpoint_are_named(self):
        llama, qwen2 = self.llama(), self.qwen2()
        empty = '{"model": {"type": "BPE", "vocab": {}, "merges": []}}'
        for folder, name, contents in ((llama, "tokenizer_config.json", ("{", "[]")), (llama, "efim.json", ("{", "[]")),
                                       (llama, "added_tokens.json", ("{", "[]")), (qwen2, "tokenizer.json", ("{", "[]", "{}", empty))):
            file = folder / name
            before = file.read_bytes() if file.exists() else None
            for content in contents:
                with self.subTest(name=name, content=content):
                    file.write_text(content)
                    self.assertIn(str(file), self.refused("export", "--model", folder, "--out", self.folder / "m.gguf"))
            file.unlink() if before is None else file.write_bytes(before)

    def test_damaged_safetensors_are_refused(self):
        folder = self.llama()
        file = folder / "model-00001-of-00002.safetensors"
        whole = file.read_bytes()
        length, = struct.unpack("<Q", whole[:8])
        header = json.loads(whole[8:8 + length])
        name = next(name for name in header if name != "__metadata__")
        beyond = json.dumps({**header, name: {**header[name], "data_offsets": [0, len(whole) * 2]}}).encode()
        for content, what in ((b"", "too short"), (whole[:100], "cut off"), (struct.pack("<Q", 1 << 60) + whole[8:], "cut off"),
                              (struct.pack("<Q", 4) + b"nope" + whole, "header is wrong"),
                              (struct.pack("<Q", len(beyond)) + beyond + whole[8 + length:], "do not fit together")):
            with self.subTest(what=what):
                file.write_bytes(content)
                self.assertIn(what, self.refused_model(folder))


if __name__ == "__main__":
    unittest.main()
