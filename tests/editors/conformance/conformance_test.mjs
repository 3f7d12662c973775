// What efimd says to a client, against LSP 3.18 and against what each client in use needs. Run by conformance_test.py.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MetaModel } from './meta_model.mjs';
import { protocol, Server } from './server.mjs';
import { complaints, typedMessages } from './types.mjs';

const { EFIMD_RECORDING, EFIMD_EXTENSION, EFIMD_META_MODEL, EFIMD_SOURCE } = process.env;
const kText = 'def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + \n';
const kLine = 3, kColumn = 30;
const kUntitled = 'untitled:encodings';
const kFile = 'file:///project/fibonacci.py';
const kHarmless = [-32800, -32801, -32802]; // VS Code shows every other error to the user
const kAt = (line, character) => ({ start: { line, character }, end: { line, character } });

let server;
before(async () => { server = await (await Server.start()).loaded(); });
after(() => server?.end());

const said = () => readFileSync(EFIMD_RECORDING, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line));
const texts = (list) => list.items.map((item) => item.insertText);

/** The items for a text that was just opened. It has no path, which the model would see. */
async function itemsFor(text, line, character, uri = `untitled:${++itemsFor.count}`) {
  await server.open(uri, text);
  return (await server.ask(uri, line, character)).items;
}
itemsFor.count = 0;

test('inline completion is advertised statically, and nothing is registered later', () => {
  const { capabilities } = server.initialized;
  assert.ok(capabilities.inlineCompletionProvider);
  assert.ok(capabilities.notebookDocumentSync);
  assert.equal(capabilities.textDocumentSync.change, protocol.TextDocumentSyncKind.Incremental);
  assert.deepEqual(server.registrations, []);
});

for (const [offered, expected] of [[undefined, 'utf-16'], [['utf-16'], 'utf-16'], [['utf-8', 'utf-16', 'utf-32'], 'utf-8'], [['utf-32', 'utf-8', 'utf-16'], 'utf-32']])
  test(`of the encodings ${offered ?? 'that are not told'} one is chosen, and positions count in it`, async (t) => {
    const other = await (await Server.start({ encodings: offered })).loaded();
    let ended = false;
    t.after(() => ended || other.end()); // a failure must not leave a process behind
    assert.equal(other.initialized.capabilities.positionEncoding, expected);
    const comment = '# é😀'; // 4 characters, 5 UTF-16 code units, 8 bytes
    const length = { 'utf-8': 8, 'utf-16': 5, 'utf-32': 4 }[expected];
    await other.open(kUntitled, kText.replace('+ \n', `+ ${comment}\n`));
    await other.change(kUntitled, 2, { range: { start: { line: kLine, character: kColumn }, end: { line: kLine, character: kColumn + length } }, text: '' });
    const list = await other.ask(kUntitled, kLine, kColumn);
    assert.deepEqual(texts(list), texts({ items: await itemsFor(kText, kLine, kColumn) }));
    ended = true;
    assert.equal(await other.end(), 0);
  });

test('a newer request for a document makes the older one null', async () => {
  const uri = 'file:///project/superseded.py';
  const long = await (await Server.start({ efim: { maxTokens: 400, stop: 'none' } })).loaded();
  await long.open(uri, kText.repeat(20));
  const [older, newer] = await Promise.all([long.ask(uri, kLine, kColumn), long.ask(uri, kLine, kColumn)]);
  assert.equal(older, null);
  assert.ok(Array.isArray(newer.items));
  await long.end();
});

test('nothing to suggest is an empty list, never null and never an error', async () => {
  await server.open('file:///project/.env', 'KEY=\n', 'plaintext');
  assert.deepEqual(await server.ask('file:///project/.env', 0, 4), { items: [] });
  assert.deepEqual(await server.ask('file:///project/not-open.py', 0, 0), { items: [] });
});

test('a request that the client cancels is answered as cancelled', async () => {
  const uri = 'file:///project/cancelled.py';
  const long = await (await Server.start({ efim: { maxTokens: 400, stop: 'none' } })).loaded();
  await long.open(uri, kText.repeat(20));
  const cancelled = new protocol.CancellationTokenSource();
  const answer = long.ask(uri, kLine, kColumn, { token: cancelled.token });
  cancelled.cancel();
  await assert.rejects(answer, { code: protocol.LSPErrorCodes.RequestCancelled });
  await long.end();
});

test('an automatic request has one item at most, one by hand may have more', async () => {
  await server.open(kFile, kText);
  assert.equal((await server.ask(kFile, kLine, kColumn)).items.length, 1);
  const byHand = await server.ask(kFile, kLine, kColumn, { kind: protocol.InlineCompletionTriggerKind.Invoked });
  assert.ok(byHand.items.length >= 1);
});

test("an item's command is one that the server lists, and takes", async () => {
  const [{ command }] = await itemsFor(kText, kLine, kColumn);
  assert.ok(protocol.Command.is(command));
  assert.ok(server.initialized.capabilities.executeCommandProvider.commands.includes(command.command));
  assert.equal(await server.connection.sendRequest(protocol.ExecuteCommandRequest.type,
    { command: command.command, arguments: command.arguments }), null);
});

test("a character past the line's end is the line's end", async () => {
  const there = texts({ items: await itemsFor(kText, kLine, kColumn) });
  assert.ok(there.length > 0);
  assert.deepEqual(texts({ items: await itemsFor(kText, kLine, 100_000) }), there);
});

test('versions may skip, and changes of one notification apply in sequence', async () => {
  const uri = 'untitled:sequence';
  await server.open(uri, 'x\n');
  await server.change(uri, 7, { text: kText.slice(0, 30) }, { range: kAt(1, 12), text: '?' },
    { range: { start: { line: 1, character: 12 }, end: { line: 1, character: 13 } }, text: kText.slice(30) });
  assert.deepEqual(texts(await server.ask(uri, kLine, kColumn)), texts({ items: await itemsFor(kText, kLine, kColumn) }));
});

/** What every client relies on: see each message. `line`: the document's, without its end. */
function checkItem(item, line, at) {
  const { start, end } = item.range;
  assert.ok(protocol.Range.is(item.range), 'there is a range, in unsigned integers');
  assert.deepEqual([start.line, end.line], [at.line, at.line], 'it lies in the line of the cursor');
  assert.ok(start.character <= at.character && at.character <= end.character, 'the cursor lies in it');
  const typed = line.slice(start.character, at.character);
  for (const text of [item.insertText, item.filterText])
    assert.ok(text.startsWith(typed), 'the text begins with what is typed of it');
  assert.ok(!item.insertText.includes('\r'), 'lines end with \\n only');
  if (end.character === at.character) return 'inserted';
  assert.equal(end.character, line.length, "what it replaces behind the cursor goes to the line's end");
  let found = typed.length;
  for (const letter of line.slice(at.character).replace(/\s/g, '')) {
    found = item.insertText.indexOf(letter, found) + 1;
    assert.ok(found > 0, `what it replaces is in it: ${line.slice(at.character)}`);
  }
  return 'swallowed';
}

// Lines of a document: at each other place most of it is evaluated again, which for a whole file takes four times as long.
const kPartLines = 25;

for (const [lineEnd, shares] of [['\n', [0.6, 1]], ['\r\n', [0.8]]])
  test(`items fit their place all over a file whose lines end with ${JSON.stringify(lineEnd)}`, async () => {
    const all = readFileSync(EFIMD_SOURCE, 'utf8').split('\n');
    const short = await (await Server.start({ efim: { maxTokens: 8 } })).loaded();
    const ways = { inserted: 0, swallowed: 0 };
    for (let first = 0; first < all.length; first += kPartLines) {
      const lines = all.slice(first, first + kPartLines);
      const uri = `file:///project/all_over_${lineEnd.length}_${first}.cpp`;
      await short.open(uri, lines.join(lineEnd), 'cpp');
      for (const [line, text] of lines.entries())
        for (const share of shares) {
          const at = { line, character: Math.floor(text.length * share) };
          for (const item of (await short.ask(uri, at.line, at.character)).items) ++ways[checkItem(item, text, at)];
        }
    }
    assert.equal(await short.end(), 0);
    console.log(`# ${ways.inserted} inserted, ${ways.swallowed} over what stood behind the cursor`);
    assert.ok(ways.inserted > 20, JSON.stringify(ways));
  });

test('over brackets that an editor closed the range goes to the end of the line, and they are not doubled', async () => {
  let swallowed = 0;
  for (const [text, line, column] of [['int f() {\n  int total = 0;\n  for ()\n}\n', 2, 7], ['int main() {\n  printf()\n}\n', 1, 9], ['def f(a):\n    print()\n', 1, 10], ['x = [1, 2, ]\n', 0, 11]])
    for (const item of await itemsFor(text, line, column)) {
      const row = text.split('\n')[line];
      if (checkItem(item, row, { line, character: column }) === 'swallowed') ++swallowed;
      const whole = row.slice(0, item.range.start.character) + item.insertText + row.slice(item.range.end.character);
      const first = whole.split('\n')[0];
      assert.ok(first.split(')').length <= first.split('(').length, whole);
    }
  assert.ok(swallowed > 0);
});

test('a model that fails is one message to the user, and no error to a request', async () => {
  process.env.EFIMD_RUNTIME_DIR += '-failing';
  process.env.EFIMD_MODEL = join(EFIMD_EXTENSION, 'package.json');
  const failing = await (await Server.start()).loaded();
  await failing.open(kFile, kText);
  assert.deepEqual(await failing.ask(kFile, kLine, kColumn), { items: [] });
  await failing.connection.sendRequest('efim/stop');
  await failing.end();
  const messages = said().filter(({ from, message }) => from === 'server' && message.method === 'window/showMessage');
  assert.equal(messages.length, 1);
  assert.match(messages[0].message.params.message, /package\.json/);
});

test('all that was said has the types of LSP 3.18, each request has one answer, and errors are harmless', () => {
  const typed = typedMessages(said());
  assert.deepEqual(typed.unanswered, []);
  const kinds = new Set(typed.map(([what]) => what));
  for (const kind of ['result of initialize', 'result of textDocument/inlineCompletion', 'result of workspace/executeCommand',
    'result of shutdown', 'error of textDocument/inlineCompletion', 'window/showMessage'])
    assert.ok(kinds.has(kind), `${kind} is among ${[...kinds].join(', ')}`);
  const folder = join(EFIMD_EXTENSION, 'conformance');
  assert.equal(complaints(typed, folder), '');
  for (const [what, , value] of typed.filter(([each]) => each.startsWith('error of textDocument')))
    assert.ok(kHarmless.includes(value.code), `${what}: ${JSON.stringify(value)}`);
  console.log(`# ${typed.length} messages: ${[...kinds].join(', ')}`);
});

test('the check of types finds what is missing, what is wrong and what is unknown', () => {
  const folder = join(EFIMD_EXTENSION, 'conformance');
  const item = { insertText: 'x', range: kAt(0, 0) };
  const type = 'lsp.InlineCompletionList | null';
  assert.equal(complaints([['good', type, { items: [item] }]], folder), '');
  for (const bad of [{}, { items: [{ range: item.range }] }, { items: [{ ...item, range: { start: 0 } }] }, { items: [{ ...item, insertText: 1 }] },
    { items: [{ ...item, unknown: 1 }] }])
    assert.match(complaints([['bad', type, bad]], folder), /said\.ts/, JSON.stringify(bad));
});

const noMetaModel = !existsSync(EFIMD_META_MODEL) && 'install_meta_model says why there is no metaModel';

test('all that was said is as the metaModel of the specification has it', { skip: noMetaModel }, () => {
  const model = new MetaModel(EFIMD_META_MODEL);
  const checked = {};
  for (const [what, , value] of typedMessages(said())) {
    if (what.startsWith('error of')) continue; // errors are JSON-RPC's
    const method = what.replace('result of ', '');
    const type = method === what ? model.paramsOf(method) : model.resultOf(method);
    assert.equal(model.complaint(value, type), '', `${what}: ${JSON.stringify(value)}`);
    checked[what] = (checked[what] ?? 0) + 1;
  }
  assert.ok(checked['result of initialize'] > 0 && checked['result of textDocument/inlineCompletion'] > 100, JSON.stringify(checked));
  console.log(`# ${JSON.stringify(checked)}`);
});

test('the check by the metaModel finds what is missing, what is wrong and what is unknown', { skip: noMetaModel }, () => {
  const model = new MetaModel(EFIMD_META_MODEL);
  const type = model.resultOf('textDocument/inlineCompletion');
  const item = { insertText: 'x', range: kAt(0, 0) };
  assert.equal(model.complaint({ items: [item] }, type), '');
  assert.equal(model.complaint(null, type), '');
  for (const [bad, complaint] of [[{}, /lacks items/], [{ items: [{ range: item.range }] }, /lacks insertText/], [{ items: [{ ...item, range: { start: 0 } }] }, /range lacks end/],
    [{ items: [{ ...item, range: kAt(-1, 0) }] }, /line is no uinteger/], [{ items: [{ ...item, insertText: 1 }] }, /insertText is no string/], [{ items: [{ ...item, unknown: 1 }] }, /unknown is unknown/]])
    assert.match(model.complaint(bad, type), complaint);
  const initialized = model.resultOf('initialize');
  assert.equal(model.complaint(server.initialized, initialized), '');
  assert.match(model.complaint({ capabilities: { textDocumentSync: 3 } }, initialized), /textDocumentSync/);
});
