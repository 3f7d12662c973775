// Writes a vocabulary without a model as GGUF: magic, version 3, counts, then key, type number and value of each entry;
// strings with a u64 length in front, arrays with their type and a u64 count, all little-endian.
import {writeFileSync} from 'node:fs';

const u32 = (value) => {
  const out = Buffer.alloc(4);
  out.writeUInt32LE(value);
  return out;
};
const u64 = (value) => {
  const out = Buffer.alloc(8);
  out.writeBigUInt64LE(BigInt(value));
  return out;
};
const f32 = (value) => {
  const out = Buffer.alloc(4);
  out.writeFloatLE(value);
  return out;
};
const string = (text) => {
  const bytes = Buffer.from(text);
  return Buffer.concat([u64(bytes.length), bytes]);
};
const array = (type, write, values) =>
    Buffer.concat([u32(9), u32(type), u64(values.length), ...values.map(write)]);

/** A unigram vocabulary (tokenizer.ggml.model "t5") of `texts`' characters and most frequent words. */
export function writeUnigram(path, texts) {
  const counts = new Map();
  const count = (piece, times) => counts.set(piece, (counts.get(piece) ?? 0) + times);
  for (const text of texts) {
    for (const character of text.replaceAll(' ', '▁')) count(character, 1);
    for (const [word] of text.matchAll(/ ?[A-Za-z_]+|[ \t]+|[^\sA-Za-z_]+|\n+/g)) {
      const piece = word.replaceAll(' ', '▁');
      for (const length of [2, 3, 4, 6, piece.length])
        if (length <= piece.length && length <= 24) count(piece.slice(0, length), 1);
    }
  }
  const characters = [...counts.keys()].filter(
      (piece) => [...piece].length === 1 && piece > '\u0000' && piece < '\ud800');
  const words = [...counts.entries()]
                    .filter(
                        ([piece, times]) => [...piece].length > 1 && times > 3 &&
                            !/[\0\ud800-\udfff]/.test(piece))
                    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
                    .slice(0, 8000)
                    .map(([piece]) => piece);
  const total = [...counts.values()].reduce((a, b) => a + b, 0);
  const pieces = [...new Set(['▁', ...characters.slice(0, -20), ...words])];
  const tokens = ['<unk>', '<s>', '</s>', ...pieces];
  const scores = [0, 0, 0, ...pieces.map((piece) => Math.log((counts.get(piece) ?? 1) / total))];
  const types = [2, 3, 3, ...pieces.map(() => 1)];
  const entries = [
    [string('general.architecture'), u32(8), string('llama')],
    [string('tokenizer.ggml.model'), u32(8), string('t5')],
    [string('tokenizer.ggml.pre'), u32(8), string('default')],
    [string('tokenizer.ggml.tokens'), array(8, string, tokens)],
    [string('tokenizer.ggml.scores'), array(6, f32, scores)],
    [string('tokenizer.ggml.token_type'), array(5, u32, types)],
    [string('tokenizer.ggml.unknown_token_id'), u32(4), u32(0)],
    [string('tokenizer.ggml.bos_token_id'), u32(4), u32(1)],
    [string('tokenizer.ggml.eos_token_id'), u32(4), u32(2)],
    [string('tokenizer.ggml.add_space_prefix'), u32(7), Buffer.from([1])],
    [string('tokenizer.ggml.add_bos_token'), u32(7), Buffer.from([0])],
    [string('tokenizer.ggml.add_eos_token'), u32(7), Buffer.from([0])],
  ];
  writeFileSync(
      path,
      Buffer.concat([Buffer.from('GGUF'), u32(3), u64(0), u64(entries.length), ...entries.flat()]));
}
