// The peer's tokens/s over a model file, as measure_speed() in steps.cpp: a prompt of 512 tokens, then 64 greedy tokens.
// usage: peer_speed.mjs PEER_FOLDER MODEL THREADS; prints two numbers. Of its two kinds of attention the faster counts.
import {openPeer} from '../peer/peer.mjs';

const [folder, modelPath, threads] = process.argv.slice(2);
const kPrompt = 512;
const kGenerated = 64;
const kPromptRuns = 3;

async function promptSpeed(sequence, prompt) {
  const seconds = [];
  for (let run = 0; run < kPromptRuns; run++) {
    await sequence.clearHistory();
    const start = performance.now();
    await sequence.evaluateWithoutGeneratingNewTokens(prompt);
    seconds.push((performance.now() - start) / 1e3);
  }
  return kPrompt / seconds.sort((a, b) => a - b)[1];
}

async function generationSpeed(sequence) {
  let start = 0;
  let count = 0;
  for await (const token of sequence.evaluate([1000], {temperature: 0, yieldEogToken: true})) {
    if (count++ === 0) start = performance.now();
    if (count > kGenerated) break;
  }
  return kGenerated / ((performance.now() - start) / 1e3);
}

const llama = await openPeer(folder);
const model = await llama.loadModel({modelPath, gpuLayers: 0});
const best = [0, 0];
for (const flashAttention of [false, true]) {
  const context = await model.createContext(
      {contextSize: 1024, batchSize: kPrompt, flashAttention, threads: Number(threads)});
  const sequence = context.getSequence();
  const prompt = Array.from({length: kPrompt}, (_, at) => 1000 + at);
  best[0] = Math.max(best[0], await promptSpeed(sequence, prompt));
  best[1] = Math.max(best[1], await generationSpeed(sequence));
  await context.dispose();
}
await model.dispose();
console.log(best.map((speed) => speed.toFixed(1)).join(' '));
process.exit(0);
