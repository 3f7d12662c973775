// Token ids of many texts equal the peer's, on the real vocabularies of ../shared/vocab.
// usage: tokens.mjs PEER_FOLDER OURS WRITE_MODEL SOURCE_FOLDER
import {existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

import {numbers, openPeer, ours, peerTokens} from './peer.mjs';

const [peerFolder, program, , source] = process.argv.slice(2);
const vocabularies = join(source, '../shared/vocab');
if (!existsSync(vocabularies)) {
  console.log(`SKIP: no vocabularies in ${vocabularies}`);
  process.exit(77);
}

/** A copy of a vocabulary file with another pre-tokenizer's name: its key, u32 type 8, u64 length, bytes. */
function withPreTokenizer(path, name, folder) {
  const bytes = readFileSync(path);
  const key = Buffer.from('tokenizer.ggml.pre');
  const at = bytes.indexOf(key) + key.length + 4;
  const length = Number(bytes.readBigUInt64LE(at));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(name.length));
  const copy = join(folder, `${name}.gguf`);
  writeFileSync(copy, Buffer.concat([
    bytes.subarray(0, at), size, Buffer.from(name), bytes.subarray(at + 8 + length)
  ]));
  return copy;
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

function sourceTexts() {
  const files = [
    'README.md', 'base/utf8.h', 'base/utf8.cpp', 'engine/engine.h', 'engine/kv/kv_pool.cpp',
    'tests/peer/tokens.mjs'
  ];
  return files.map((file) => join(source, file))
      .filter(existsSync)
      .map((file) => readFileSync(file, 'utf8'));
}

function vectorTexts(path) {
  return existsSync(`${path}.inp`) ?
      readFileSync(`${path}.inp`, 'utf8').split('\n__ggml_vocab_test__\n') :
      [];
}

async function compare(llama, name, path, texts) {
  const mine = ours(program, {model: path, texts, prompts: []}).tokens;
  const theirs = await peerTokens(llama, path, texts);
  const same = (a, b) =>
      a.length > 0 && a.length === b.length && a.every((id, index) => id === b[index]);
  const bad =
      texts.map((_, at) => at).filter((at) => !(texts[at] === '' || same(mine[at], theirs[at])));
  console.log(`${bad.length ? 'FAIL' : 'ok'}  ${name}: ${texts.length - bad.length} of ${
      texts.length} texts agree`);
  for (const at of bad.slice(0, 10)) {
    const first = theirs[at].findIndex((id, index) => id !== mine[at][index]);
    console.log(`      ${JSON.stringify(texts[at].slice(0, 120))}: at token ${first} ours ${
        mine[at].slice(first, first + 6)}, peer ${theirs[at].slice(first, first + 6)}`);
  }
  return bad.length;
}

const folder = mkdtempSync(join(tmpdir(), 'efimd-peer-'));
let faults = 0;
try {
  const llama = await openPeer(peerFolder);
  const texts = [...randomTexts(2000), ...sourceTexts()];
  const files = readdirSync(vocabularies)
                    .filter((name) => name.endsWith('.gguf'))
                    .map((name) => join(vocabularies, name));
  for (const path of files)
    faults += await compare(llama, path.split('/').at(-1), path, [...vectorTexts(path), ...texts]);
  const starcoder = files.find((path) => path.includes('starcoder'));
  if (starcoder)
    faults += await compare(
        llama, 'starcoder\'s vocabulary with the rules of qwen2',
        withPreTokenizer(starcoder, 'qwen2', folder), [...vectorTexts(starcoder), ...texts]);
  faults += await compare(llama, 'efim-boot', join(source, 'models/efim-boot.gguf'), texts);
} finally {
  rmSync(folder, {recursive: true});
}
process.exit(faults > 0 ? 1 : 0);
