// Both sides of a comparison, with one face: the peer engine in this process, ours as a program.
import {spawnSync} from 'node:child_process';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';

/** The peer engine on the CPU, from the folder that tests/peer/install filled. Quiet, for it complains of a vocabulary
 *  without tensors before it loads it as one; what fails is thrown. */
export async function openPeer(folder) {
  const {getLlama, LlamaLogLevel} =
      await import(pathToFileURL(join(folder, 'node_modules/node-llama-cpp/dist/index.js')).href);
  return getLlama({gpu: false, build: 'never', logLevel: LlamaLogLevel.fatal, progressLogs: false});
}

/** Token ids of each text: no BOS, and text that spells a special token stays text. */
export async function peerTokens(llama, modelPath, texts) {
  const model = await llama.loadModel({modelPath, vocabOnly: true});
  const tokens = texts.map((text) => model.tokenize(text, false));
  await model.dispose();
  return tokens;
}

/** For each prompt `count` greedy steps: {id, logit, second}, second being the next best token's logit. */
export async function peerGreedy(llama, modelPath, prompts, count) {
  const model = await llama.loadModel({modelPath, gpuLayers: 0});
  const all = [];
  for (const prompt of prompts) {
    // One thread: its threads wait for each other by spinning, which takes seconds a token on a busy machine.
    const context = await model.createContext(
        {contextSize: prompt.length + count, flashAttention: false, threads: 1});
    all.push(await greedySteps(context.getSequence(), prompt, count));
    await context.dispose();
  }
  await model.dispose();
  return all;
}

async function greedySteps(sequence, prompt, count) {
  const wanted = {generateNext: {logits: {filter: {tokens: [], includeTop: 2}}}};
  const steps = [];
  let input = prompt;
  while (steps.length < count) {
    const answers =
        await sequence.controlledEvaluate([...input.slice(0, -1), [input.at(-1), wanted]]);
    const best = [...answers.at(-1).next.logits].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    steps.push({id: best[0][0], logit: best[0][1], second: best[1][1]});
    input = [best[0][0]];
  }
  return steps;
}

/** The logits after every token of every prompt, one row after the other. */
export async function peerLogits(llama, modelPath, prompts) {
  const model = await llama.loadModel({modelPath, gpuLayers: 0});
  const wanted = {generateNext: {logits: true}};
  const rows = [];
  for (const prompt of prompts) {
    const context = await model.createContext(
        {contextSize: prompt.length + 1, flashAttention: false, threads: 1});
    const answers =
        await context.getSequence().controlledEvaluate(prompt.map((token) => [token, wanted]));
    for (const {next} of answers) {
      const row = new Float32Array(next.logits.size);
      for (const [token, logit] of next.logits) row[token] = logit;
      rows.push(row);
    }
    await context.dispose();
  }
  await model.dispose();
  return rows;
}

/** A generator of whole numbers below a limit, the same in every run. */
export function numbers(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** Our answer to a job (see ours.cpp). */
export function ours(program, job) {
  const run =
      spawnSync(program, {input: JSON.stringify(job), encoding: 'utf8', maxBuffer: 1 << 28});
  if (run.status !== 0) throw new Error(`${program}: ${run.stderr || run.error}`);
  return JSON.parse(run.stdout);
}
