// Token ids of many texts equal the peer's and spell the texts again: the bundled vocabulary and the real ones of
// ../shared/vocab where they are, each byte-level rule that this build knows, and a unigram model made here. The texts:
// test vectors, what rules treat differently, and more than a megabyte of real source in at least six languages.
// usage: tokens.mjs PEER_FOLDER OURS WRITE_MODEL SOURCE_FOLDER
import {existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import {numbers, openPeer, ours, peerTokens} from './peer.mjs';
import {sources} from './sources.mjs';
import {writeUnigram} from './vocabulary.mjs';

const [peerFolder, program, , source] = process.argv.slice(2);
const vocabularies = join(source, '../shared/vocab');
/**
 * A copy of a vocabulary file with another pre-tokenizer's name: its key, u32 type 8, u64 length, bytes. Weights after it
 * move off their alignment, which nobody minds who reads none, and may seem to reach further.
 */
function withPreTokenizer(path, name, folder) {
  const bytes = readFileSync(path);
  const key = Buffer.from('tokenizer.ggml.pre');
  const at = bytes.indexOf(key) + key.length + 4;
  const length = Number(bytes.readBigUInt64LE(at));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(name.length));
  const copy = join(folder, `${name}.gguf`);
  writeFileSync(copy, Buffer.concat([
    bytes.subarray(0, at), size, Buffer.from(name), bytes.subarray(at + 8 + length),
    Buffer.alloc(32)
  ]));
  return copy;
}

/** The byte-level rules that this build knows, as its source lists them. */
function rules() {
  const table = readFileSync(join(source, 'engine/tokenizer/pre_tokenizer.cpp'), 'utf8');
  return [...table.matchAll(/PreTokenizerRule\{"([^"]+)"/g)].map((match) => match[1]);
}

/** Texts made of pieces that pre-tokenizer rules treat differently; the same ones in every run. */
function randomTexts(count) {
  const pieces = [
    'a',
    'Ab',
    'word',
    'don\'t',
    'I\'LL',
    '\'s',
    '1',
    '12345',
    '3.14',
    ' ',
    '  ',
    '\t',
    '\n',
    '\r\n',
    '\n\n  ',
    '    ',
    'é',
    'e\u0301',
    'ß',
    'Ω',
    'ж',
    '中文',
    '日本',
    '한국',
    'ا',
    '١٢',
    '½',
    '²',
    '😀',
    '👨‍👩‍👧',
    '\u00a0',
    '\u200b',
    '\u3000',
    '_',
    '__x',
    '(',
    '){',
    '};',
    '->',
    '==',
    '!',
    '...',
    '—',
    '“q”',
    '€',
    '<s>',
    '<|endoftext|>',
    '\u{10ffff}',
    '\u0000',
    'ﬁ',
    'İ',
    'K'
  ];
  const next = numbers(99);
  return Array.from(
      {length: count},
      () => Array.from({length: 1 + next(12)}, () => pieces[next(pieces.length)]).join(''));
}

/** Characters at which the deepseek-llm rule's letters begin and end, each between two others. */
function letterBorders() {
  const rule = readFileSync(join(source, 'engine/tokenizer/pre_tokenizer.cpp'), 'utf8');
  const points = [...rule.matchAll(/\\x\{([0-9A-F]+)\}/g)].map((match) => parseInt(match[1], 16));
  return points.flatMap((point) => [point - 1, point, point + 1])
      .filter((point) => point < 0xd800 || point > 0xdfff)
      .map(
          (point) => `a ${String.fromCodePoint(point)}b ${String.fromCodePoint(point)}${
              String.fromCodePoint(point)}(`);
}

function sourceTexts() {
  const found = sources(peerFolder);
  const bytes = Object.values(found).flat().reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  console.log(`      real source: ${bytes} bytes of ${Object.keys(found).join(', ')}`);
  if (bytes < 1e6 || Object.keys(found).length < 6)
    throw new Error('too little source on this machine: scripts/deps --tests installs some');
  return Object.values(found).flat();
}

function vectorTexts(path) {
  return existsSync(`${path}.inp`) ?
      readFileSync(`${path}.inp`, 'utf8').split('\n__ggml_vocab_test__\n') :
      [];
}

async function compare(llama, name, path, texts) {
  const {tokens: mine, decoded} = ours(program, {model: path, texts, prompts: []});
  const theirs = await peerTokens(llama, path, texts);
  const same = (a, b) =>
      a.length > 0 && a.length === b.length && a.every((id, index) => id === b[index]);
  const fault = (at) => texts[at] !== '' &&
      (!same(mine[at], theirs[at]) || (decodes(name) && decoded[at] !== texts[at]));
  const bad = texts.map((_, at) => at).filter(fault);
  console.log(`${bad.length ? 'FAIL' : 'ok'}  ${name}: ${texts.length - bad.length} of ${
      texts.length} texts agree`);
  for (const at of bad.slice(0, 10)) {
    const first = theirs[at].findIndex((id, index) => id !== mine[at][index]);
    console.log(`      ${JSON.stringify(texts[at].slice(0, 120))}: at token ${first} ours ${
        mine[at].slice(first, first + 6)}, peer ${theirs[at].slice(first, first + 6)}`);
  }
  return bad.length;
}

/** Whether every text must come back: a unigram model has no bytes for characters that it does not know. */
const decodes = (name) => !name.startsWith('unigram');

const folder = mkdtempSync(join(tmpdir(), 'efimd-peer-'));
let faults = 0;
try {
  const llama = await openPeer(peerFolder);
  const random = [...randomTexts(2000), ...letterBorders()];
  const texts = [...random, ...sourceTexts()];
  const files = (existsSync(vocabularies) ? readdirSync(vocabularies) : [])
                    .filter((name) => name.endsWith('.gguf'))
                    .map((name) => join(vocabularies, name));
  if (files.length === 0) console.log(`SKIP  the real vocabularies: none in ${vocabularies}`);
  for (const path of files)
    faults += await compare(llama, path.split('/').at(-1), path, [...vectorTexts(path), ...texts]);
  const boot = join(source, 'models/efim-boot.gguf');
  faults += await compare(llama, 'efim-boot', boot, texts);
  const real = files.find((path) => path.includes('starcoder')) ?? boot;
  for (const rule of rules())
    faults += await compare(
        llama, `${real.split('/').at(-1)} with the rule ${rule}`,
        withPreTokenizer(real, rule, folder), texts);
  const unigram = join(folder, 'unigram.gguf');
  writeUnigram(unigram, texts.filter((_, at) => at % 3 > 0));
  faults += await compare(llama, 'unigram', unigram, texts);
} finally {
  rmSync(folder, {recursive: true});
}
process.exit(faults > 0 ? 1 : 0);
