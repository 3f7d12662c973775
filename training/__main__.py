"""python3 -m training COMMAND ...: one command for each step of README.md."""
import importlib
import sys

from training.errors import TrainingError

COMMANDS = {
    "corpus": "collects source code from packages, cleans it, splits it by package",
    "tokenizer": "trains a sentencepiece vocabulary on it",
    "samples": "makes fill-in-the-middle samples, whole or in fragments",
    "train": "trains a model on them, from scratch or on from a checkpoint",
    "shards": "packs samples for a machine with a card and no network",
    "gpu": "trains a large model on such a machine, in calls of some minutes",
    "pieces": "splits a checkpoint or a GGUF into files of 16 MiB, and joins them",
    "finetune": "makes an EFIM model of a Hugging Face checkpoint folder",
    "export": "writes a model as GGUF",
    "take": "takes such a GGUF back, to train it further",
    "evaluate": "measures GGUF files at cursors in code that they have not seen, with efimd",
}


def usage() -> str:
    lines = [f"  {name:<10} {what}" for name, what in COMMANDS.items()]
    return "usage: python3 -m training COMMAND ...; --help after each\n\n" + "\n".join(lines)


def main() -> int:
    words = sys.argv[1:]
    if words and words[0] in ("-h", "--help"):
        print(usage())
        return 0
    if not words or words[0] not in COMMANDS:
        print(usage(), file=sys.stderr)
        return 2
    module = importlib.import_module(f"training.{words[0]}")
    try:
        return module.main(words[1:])
    except TrainingError as error:
        print(f"{words[0]}: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print(f"{words[0]}: Python has no {error.name} here; scripts/deps --training installs it for /usr/bin/python3", file=sys.stderr)
        return 1
    except OSError as error:  # no space, no permission, no such file: the system says which
        print(f"{words[0]}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
