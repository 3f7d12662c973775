"""Writes what the comparison with the peer reads: GGUF files of every type from a model trained for some seconds, one of a tuned
llama with BOS, and one of a qwen2. usage: peer_models.py FOLDER; prints their paths."""
import json
import pathlib
import shutil
import sys

import finetune_test
import support
from support import training


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    support.TrainingTest.shared = out
    words = support.TrainingTest.make_vocabulary()
    # 256 wide, so that Q4_K itself is used.
    training("train", "--samples", support.TrainingTest.make_samples(context=128), "--vocabulary", "1024", "--width", "256", "--layers", "2",
             "--heads", "4", "--feed-forward", "256", "--threads", "1", "--device", "cpu", "--steps", "30", "--warmup", "5", "--out", out / "run")
    models = []
    for kind in ("f16", "q8_0", "q4_k"):
        models.append(out / f"trained-{kind}.gguf")
        training("export", "--model", out / "run", "--tokenizer", words, "--type", kind, "--out", models[-1])
    llama = out / "llama"
    finetune_test.write_checkpoint(llama, 1024, qwen2=False)
    shutil.copyfile(words, llama / "tokenizer.model")
    (llama / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": True}))
    qwen2 = out / "qwen2"
    qwen2.mkdir()
    finetune_test.write_checkpoint(qwen2, finetune_test.write_byte_bpe(qwen2) + 6, qwen2=True)
    for folder in (llama, qwen2):
        models.append(out / f"{folder.name}-f16.gguf")
        training("export", "--model", folder, "--type", "f16", "--out", models[-1])
    print("\n".join(map(str, models)))


if __name__ == "__main__":
    main()
