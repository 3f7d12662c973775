"""Continues the training of a Hugging Face checkpoint (llama, qwen2) on samples with fragments, so that it needs no healing after
<MID>: its EFIM version. All weights, or low-rank adapters (--lora RANK) that are merged at the end.

Make the samples with the checkpoint's own vocabulary: python3 -m training samples --tokenizer FOLDER. OUT/model is a checkpoint
folder again, for export and for other tools; OUT/checkpoint.safetensors is the run's state, which the same command goes on from.
"""
import argparse
import pathlib

from training.train import add_run_options, execute, plan_of, use_threads, validation_of

RATE, LORA_RATE = 2e-5, 2e-4  # adapters begin as nothing, and learn little at the rate of weights that are there


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training finetune", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="the checkpoint folder")
    parser.add_argument("--lora", type=int, default=0, metavar="RANK", help="0: all weights are trained")
    parser.add_argument("--seed", type=int, default=1, help="of the adapters")
    add_run_options(parser, rate=None, warmup=20, decay=0.5, optimizer="adamw", opening_weight=0,
                    rate_said=f"{RATE}, with --lora {LORA_RATE},")
    options = parser.parse_args(words)
    if options.lora < 0:
        parser.error("--lora: a rank of at least 1, or 0 for all weights")
    if options.rate is None:
        options.rate = LORA_RATE if options.lora else RATE

    from training import hugging_face, lora
    from training.errors import TrainingError
    from training.run import Run, device_of
    from training.rows import Rows

    use_threads(options.threads)
    rows = Rows(options.samples)
    model, kind = hugging_face.load(options.model)
    if rows.highest_token() >= model.shape.vocabulary:
        raise TrainingError(f"{options.samples}: has tokens that the model has not; make them with --tokenizer {options.model}")
    if rows.context > model.shape.context:
        raise TrainingError(f"{options.samples}: rows of {rows.context} tokens; the model's context is {model.shape.context}")
    if options.lora:
        lora.adapt(model, options.lora, options.seed)
    run = Run(model, plan_of(options), rows, validation_of(options, model.shape.vocabulary), device_of(options.device), options.out)
    execute(run, options)
    if run.step >= run.plan.steps:
        if options.lora:
            lora.merge(model)
        hugging_face.save(options.model, options.out / "model", model.cpu(), kind,
                          {"fragment_share": rows.fragment_share, "steps": run.step, "lora_rank": options.lora})
        print(f"{options.out / 'model'}: the model; python3 -m training export --model {options.out / 'model'} makes a GGUF of it")
    return 0
