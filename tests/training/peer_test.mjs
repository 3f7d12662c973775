// GGUF files that export writes, read by an independent engine: the same tokens, and the same likeliest next tokens as efimd's.
// usage: peer_test.mjs PEER_FOLDER OURS SOURCE_FOLDER MODEL...
//
// F16 files must agree in every choice that ours makes by more than kGap: the engines round differently (tests/peer/greedy.mjs). Of
// quantized files the peer rounds activations as well, so that there kRoundedGap holds.
import {readFileSync} from 'node:fs';
import {join} from 'node:path';

const [peerFolder, program, source, ...models] = process.argv.slice(2);
const {openPeer, ours, peerGreedy, peerTokens} = await import(join(source, 'tests/peer/peer.mjs'));
const kCount = 16;
const kGap = 2e-2;
const kRoundedGap = 0.5;

const kTexts = [
  'def main():\n    for i in range(10):\n        ret',
  'int main(int argc, char** argv) {\n  return 12345;\n}\n',
  '    indented\t\ttabs  and   runs    of spaces',
  'naïve 🙂 <fim_prefix> </s> ünï',
  '\n\n\n',
  readFileSync(join(source, 'training/fragments.py'), 'utf8').slice(0, 700),
];

const same = (a, b) => a.length === b.length && a.every((value, at) => value === b[at]);

/** What differs first between our steps and the peer's, beyond `gap`; null when nothing does. */
function difference(mine, theirs, gap) {
  const at = mine.findIndex((step, step_at) => step.id !== theirs[step_at].id);
  if (at < 0 || mine[at].logit - mine[at].second < gap) return null;
  return `token ${at}: ours ${mine[at].id} (ahead by ${(mine[at].logit - mine[at].second).toFixed(3)}), peer ${theirs[at].id}`;
}

let faults = 0;
const llama = await openPeer(peerFolder);
for (const model of models) {
  const gap = /f16|f32/i.test(model) ? kGap : kRoundedGap;
  const texts = ours(program, {model, texts: kTexts, prompts: []}).tokens;
  const theirs = await peerTokens(llama, model, kTexts);
  texts.forEach((tokens, at) => {
    if (same(tokens, theirs[at])) return;
    faults += 1;
    console.log(`FAIL  ${model}: text ${at}: ours ${tokens.slice(0, 12)}, peer ${theirs[at].slice(0, 12)}`);
  });
  const prompts = texts.filter((tokens) => tokens.length > 3).map((tokens) => tokens.slice(0, 100));
  const mine = ours(program, {model, texts: [], prompts, count: kCount}).greedy;
  const peers = await peerGreedy(llama, model, prompts, kCount);
  const wrong = mine.map((steps, at) => difference(steps, peers[at], gap)).filter((text) => text !== null);
  const top1 = mine.filter((steps, at) => steps[0].id === peers[at][0].id).length;
  faults += wrong.length;
  console.log(`${wrong.length ? 'FAIL' : 'ok'}  ${model}: ${texts.length} texts, top-1 equal for ${top1} of ${prompts.length} prompts`);
  for (const text of wrong) console.log(`      ${text}`);
}
process.exit(faults > 0 ? 1 : 0);
