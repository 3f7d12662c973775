// Next-token distributions equal the peer's, for every architecture and weight type, on random models that are written
// here: both engines read the same prompts token by token and give the distribution after each.
// usage: distributions.mjs PEER_FOLDER OURS
//
// The peer rounds activations to the weights' type (F16, BF16) or to 8 bits (quantized; in groups of 256 for K types); ours
// stay F32 for the first and are 8 bits in groups of 32 for the second. Seen here: F32 6e-10 to 5e-8, F16 6e-8 to 3e-7,
// BF16 4e-6 to 2e-5, quantized 3e-5 to 6e-4, of which K types are the larger. Whose rounding that is was measured against
// the same weights widened to F32 (llama and starcoder2): BF16 ours 0, the peer 6e-6; Q8_0, Q4_0, Q5_1 both 8e-5; Q4_K and
// Q6_K ours 8e-5, the peer 1.7e-4.
//
// These numbers are a property of the models too: where the layers drown the embedding (embedding_gain 1) each rounding is
// amplified, and the same code gave BF16 1e-4 to 3e-4 and K types 3e-3 to 6e-3, beside F32 5e-7.
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import {numbers, openPeer, ours, peerLogits} from './peer.mjs';

const [peerFolder, program] = process.argv.slice(2);
/** Mean KL of F32, F16 and BF16. */
const kDivergenceMax = 1e-4;
/** Mean KL of quantized types. */
const kDivergenceQuantizedMax = 2e-3;
/** Where first and second probability are further apart, the first choice must be the same. */
const kClear = 0.02;
/** Mean probability of the first choice, 1 / 320 where all are alike: flat distributions agree whatever the model. */
const kTopMin = 0.05;
/** A model without one of its features diverges at least this many times the limit. */
const kSpoiltMin = 5;
const kPromptTokens = [160, 60, 1];

const unrounded = (type) => ['F32', 'F16', 'BF16'].includes(type);

function randomPrompts() {
  const next = numbers(2024);
  return kPromptTokens.map((count) => Array.from({length: count}, () => 3 + next(310)));
}

/** log softmax of one row. */
function logProbabilities(logits) {
  const largest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0));
  return Float64Array.from(logits, (logit) => logit - largest - total);
}

function firstTwo(logs) {
  let [first, second] = [-1, -1];
  for (let id = 0; id < logs.length; ++id) {
    if (first < 0 || logs[id] > logs[first])
      [first, second] = [id, first];
    else if (second < 0 || logs[id] > logs[second])
      second = id;
  }
  return [first, second];
}

/** Over all positions: mean KL(theirs || mine), mean first probability, and where clear first choices differ. */
function compared(mine, theirs) {
  const sum = {divergence: 0, top: 0, clear: 0, differ: []};
  theirs.forEach((row, at) => {
    const [p, q] = [logProbabilities(row), logProbabilities(mine[at])];
    for (let id = 0; id < p.length; ++id) sum.divergence += Math.exp(p[id]) * (p[id] - q[id]);
    const [first, second] = firstTwo(p);
    sum.top += Math.exp(p[first]);
    if (Math.exp(p[first]) - Math.exp(p[second]) <= kClear) return;
    ++sum.clear;
    if (firstTwo(q)[0] !== first) sum.differ.push(at);
  });
  return {...sum, divergence: sum.divergence / theirs.length, top: sum.top / theirs.length};
}

/** Our logits of a job, row by row; the model stays in the folder. */
function evaluateOurs(job) {
  const answer = ours(program, job);
  const vocabulary = answer.vocabulary;
  const bytes = readFileSync(answer.logits);
  const all = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const rows = Array.from(
      {length: all.length / vocabulary},
      (_, at) => all.subarray(at * vocabulary, (at + 1) * vocabulary));
  return {path: answer.model, rows};
}

function faultOf(type, result) {
  const limit = unrounded(type) ? kDivergenceMax : kDivergenceQuantizedMax;
  if (!(result.divergence <= limit))
    return `diverges by ${result.divergence.toExponential(2)}, more than ${limit}`;
  if (result.differ.length > 0)
    return `chooses otherwise behind tokens ${result.differ.slice(0, 5)}`;
  if (result.top < kTopMin)
    return `is too flat to say anything: the first choice has ${result.top.toFixed(3)}`;
  return null;
}

const folder = mkdtempSync(join(tmpdir(), 'efimd-peer-'));
const faults = [];
try {
  const llama = await openPeer(peerFolder);
  const {varieties} = ours(program, {list: true});
  const prompts = randomPrompts();
  for (const {name, spoiltBy, types} of varieties) {
    const shown = [];
    for (const type of types) {
      const job = {variety: name, type, folder, prompts};
      const mine = evaluateOurs({...job, spoilt: false});
      const theirs = await peerLogits(llama, mine.path, prompts);
      const result = compared(mine.rows, theirs);
      const fault = faultOf(type, result);
      if (fault) faults.push(`${name} ${type} ${fault}`);
      shown.push(`${type} ${result.divergence.toExponential(1)}`);
      if (type !== 'F32') continue;
      const spoilt = compared(evaluateOurs({...job, spoilt: true}).rows, theirs).divergence;
      if (!(spoilt >= kSpoiltMin * kDivergenceMax))
        faults.push(`${name} with ${spoiltBy} diverges by no more than ${spoilt.toExponential(2)}`);
      console.log(
          `${name}: first choice ${result.top.toFixed(2)} on average, clear in ${result.clear} of ${
              theirs.length}; ` +
          `with ${spoiltBy} it diverges by ${spoilt.toExponential(1)}`);
    }
    console.log(`      mean KL  ${shown.join('  ')}`);
  }
} finally {
  rmSync(folder, {recursive: true});
}
for (const fault of faults) console.log(`FAIL  ${fault}`);
process.exit(faults.length > 0 ? 1 : 0);
