// efimd's extension in a real VS Code page. Run by vscode_test.py, which gives the environment and says what is in it.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { canMount, inOrder, kReadOnly, Workbench, readGhost, until } from './workbench.mjs';
import { outcomes, readRecording } from './recording.mjs';
import { allAnswered, asked, daemonThat, efimd, kAutomatic, kindsSince, kInvoked, receipts, startOldDaemon, status, written } from './efimd.mjs';

const { EFIMD_CONFIG, EFIMD_MODELS, EFIMD_RECORDED, EFIMD_RECORDING, EFIMD_INSTALLED, EFIMD_TEXTS, HOME } = process.env;

const kSettings = {
  'efimd.path': EFIMD_RECORDED,
  'efimd.offerModel': false,
  'workbench.colorTheme': 'Default Dark Modern',
  'editor.quickSuggestions': { other: 'off', comments: 'off', strings: 'off' },
  'editor.suggestOnTriggerCharacters': false,
  'editor.parameterHints.enabled': false,
  'editor.minimap.enabled': false,
  'workbench.editorLargeFileConfirmation': 1024,
  'editor.insertSpaces': true,
  'editor.detectIndentation': false,
  '[plaintext]': { 'editor.autoClosingBrackets': 'never', 'editor.autoClosingQuotes': 'never', 'editor.autoIndent': 'none' },
};
const kKeys = [{ key: 'ctrl+alt+l', command: 'editor.action.inlineSuggest.acceptNextLine' }];
const kPython = readFileSync(join(EFIMD_TEXTS, 'settings.txt'), 'utf8');
const kRepeated = readFileSync(join(EFIMD_TEXTS, 'repeated.txt'), 'utf8').trimEnd();
const kCpp = `#include <vector>

int sum(const std::vector<int>& values) {
  int total = 0;
`;
const kTyped = readFileSync(join(EFIMD_TEXTS, 'typed.txt'), 'utf8').slice(0, 200);

let vscode;
const test = inOrder(async () => {
  await vscode?.screenshot('failed');
  const said = existsSync(EFIMD_RECORDING) ? readFileSync(EFIMD_RECORDING, 'utf8') : 'nothing';
  console.log(`# said last:\n${said.trim().split('\n').slice(-8).join('\n')}`);
});

before(async () => {
  vscode = await Workbench.open({ installed: EFIMD_INSTALLED, home: `${HOME}/vscode`, settings: kSettings, keys: kKeys });
});
after(() => vscode?.close());

const ourToasts = () => vscode.ourToasts();
const theToast = (pattern) => vscode.theToast(pattern);
const typeAtEnd = (text) => vscode.typeAtEnd(text, asked);

/** Types and sees ghost text, and nothing that somebody would have to click away. */
async function isServed(name) {
  await vscode.edit(name, kPython);
  await typeAtEnd('    def set(self, na');
  assert.deepEqual(await ourToasts(), []);
}

/** Until the extension has these settings: the status item shows that it has read the very file. */
async function configured(settings) {
  vscode.configure({ ...settings, 'efimd.enabled': false });
  await vscode.waitForStatus(/efimd off/);
  vscode.configure(settings);
  await vscode.waitForStatus(/efimd.*Ready/);
}

test('the status item becomes ready', async () => {
  await vscode.waitForStatus(/efimd Ready|efimd.*Ready/);
  assert.deepEqual(await vscode.toasts(), []);
});

test('in a Python file ghost text appears and Tab inserts exactly that', async () => {
  const file = await vscode.edit('settings.py', kPython);
  const ghost = await typeAtEnd('    def set(self, na');
  await vscode.screenshot('python');
  await vscode.press('Tab');
  const shown = written([...kPython.split('\n'), ghost.line, ...ghost.below]);
  await vscode.saved(file, (text) => written(text.split('\n')).join('\n') === shown.join('\n'));
  await until('the accepted item in the status', () => status().sessions.some((session) => session.accepted === 1));
});

/** What of the suggestion for `typed` at the end of a new file `key` takes; the rest of its line, and what else it has. */
async function taken(key, name, typed) {
  const file = await vscode.edit(name, kPython);
  const ghost = await typeAtEnd(typed);
  await vscode.press(key);
  const text = await vscode.saved(file, (now) => now.replace(/\)$/, '').length > (kPython + typed).length); // VS Code may have closed the bracket
  const part = text.slice((kPython + typed).length).replace(/\)$/, '');
  assert.ok(ghost.line.startsWith(typed + part), `${part} of ${JSON.stringify(ghost)}`);
  return { part, rest: ghost.line.slice((typed + part).length) };
}

test('a word is taken by its key', async () => {
  const { rest } = await taken('Control+ArrowRight', 'word.py', '    def set(self, na');
  assert.notEqual(rest, '');
});

test('a line is taken by the key that a user gave to it', async () => {
  const { part, rest } = await taken('Control+Alt+l', 'line.py', '    def set(self, na');
  assert.match(rest, /^\)?:?$/, `${part} was taken of it, where VS Code stops at a bracket that it closed`);
});

test('what Escape dismisses is gone, and the daemon is told', async () => {
  await vscode.edit('dismissed.py', kPython);
  await typeAtEnd('    def set(self, na');
  const dismissed = () => status().sessions.reduce((sum, session) => sum + (session.dismissed ?? 0), 0);
  const before = dismissed(); // a test before may have left its suggestion by Escape
  await vscode.press('Escape');
  await until('no ghost text', async () => await vscode.ghost() === null);
  await until('the dismissal in the status', () => dismissed() === before + 1);
});

test('in a C++ file a bracket that VS Code closed is not doubled', async () => {
  const file = await vscode.edit('sum.cpp', kCpp);
  const ghost = await typeAtEnd('  for (');
  await vscode.screenshot('cpp');
  await vscode.press('Tab');
  const text = (await vscode.saved(file, (now) => now.length > `${kCpp}  for ()`.length)).slice(kCpp.length);
  assert.ok(text.startsWith('  for ('), `${text}, where ${JSON.stringify(ghost)} was shown`);
  assert.ok(text.split(')').length <= text.split('(').length, text); // what the model writes may go over several lines
});

test('in a cell of a notebook ghost text goes on from the cells around it', async () => {
  const [above, typed] = kRepeated.split(/(?=def load_one)/);
  const cells = [['markdown', '# Entries'], ['python', `%matplotlib inline\n!pip install nothing\n${above.trim()}`],
    ['python', `${typed} = rea`], ['markdown', 'and more'], ['python', "load_one('.')"]];
  const file = await vscode.editCell('entries.ipynb', cells, 2);
  const ghost = await typeAtEnd('d');
  assert.ok(ghost.ghost.startsWith('_entries_of('), JSON.stringify(ghost));
  await vscode.screenshot('notebook');
  await vscode.press('Tab');
  const text = await vscode.saved(file, (now) => /read_entries_of/.test(JSON.parse(now).cells[2].source.join('')));
  const sources = JSON.parse(text).cells.map(({ source }) => source.join(''));
  assert.ok(sources[2].startsWith(`${typed} = read_entries_of(folder`), sources[2]);
  assert.deepEqual(sources.toSpliced(2, 1), cells.map(([, source]) => source).toSpliced(2, 1));
  // What is switched off in one cell is on again by another one: the file is the notebook.
  await vscode.command('efimd: Turn Suggestions On or Off for This File');
  await vscode.waitForStatus(/efimd off/);
  await vscode.press('Escape');
  await vscode.enterCell(1);
  await vscode.command('efimd: Turn Suggestions On or Off for This File');
  await vscode.waitForStatus(/efimd.*Ready/);
});

test('the status item tells the last receipt, and where the suggestion is from', async () => {
  // A language in which nothing was refused so far; and one key, so that nothing is typed through.
  await vscode.edit('entries.txt', `${kRepeated} = rea`);
  const ghost = await typeAtEnd('d');
  assert.ok(ghost.ghost.startsWith('_entries_of('), JSON.stringify(ghost));
  await until('the receipt of what is shown', () => receipts().at(-1)?.source.startsWith('recalled') && allAnswered());
  assert.match(await vscode.tooltip(), /\d+ of [\d,]+ tokens evaluated, \d+ ms; from your own text/);
});

test('a file can be switched off, and the status item says so', async () => {
  await vscode.edit('off.py', kPython);
  await vscode.command('efimd: Turn Suggestions On or Off for This File');
  await vscode.waitForStatus(/efimd off/);
  const before = asked();
  await vscode.press('Control+End');
  await vscode.type('    def set(self, na');
  assert.equal(await vscode.ghost(), null);
  assert.equal(asked(), before, 'nothing is even asked');
  await vscode.command('efimd: Turn Suggestions On or Off for This File');
  await vscode.waitForStatus(/efimd.*Ready/);
  await vscode.type('me');
  await vscode.waitForGhost();
});

test('all are switched off and on from the menu of the status item', async () => {
  await vscode.edit('all.py', kPython);
  await typeAtEnd('    def set(self');
  await vscode.chooseFirstOfMenu();
  await vscode.waitForStatus(/efimd off/);
  const before = asked();
  await vscode.type(', na');
  await vscode.waitForText('all.py', /set\(self, na/);
  assert.equal(asked(), before);
  await vscode.chooseFirstOfMenu();
  await vscode.waitForStatus(/efimd.*Ready/);
  await vscode.type('me');
  await vscode.waitForGhost();
  vscode.configure({});
});

test('by key only nothing is asked before the key, and what it brings stays while it is typed', async () => {
  await vscode.edit('by_key.py', kPython);
  await configured({ 'efimd.trigger': 'key' });
  const before = asked();
  await vscode.press('Control+End');
  await vscode.type('    def set(self, na');
  await vscode.press('Alt+Backslash');
  const { ghost } = await vscode.waitForGhost();
  assert.deepEqual(kindsSince(before), [kInvoked]);
  await vscode.type(ghost[0]);
  const followed = await until('the question for its rest', () => asked() > before + 1 && allAnswered() && asked());
  assert.equal((await vscode.waitForGhost(`set(self, na${ghost[0]}`)).ghost, ghost.slice(1));
  await vscode.type('~');
  await until('no ghost text', async () => await vscode.ghost() === null);
  await vscode.waitForText('by_key.py', /set\(self, na.~/);
  assert.equal(asked(), followed, 'something else was typed');
});

test('keystrokes can be waited for, and who asks by hand does not wait', async () => {
  await vscode.edit('waiting.py', kPython);
  await configured({ 'efimd.debounceMs': 10_000 });
  const before = asked();
  await vscode.press('Control+End');
  await vscode.type('    def set(self, na');
  await vscode.press('Alt+Backslash');
  await vscode.waitForGhost();
  assert.deepEqual(kindsSince(before), [kInvoked]);
  await configured({ 'efimd.debounceMs': 50 });
  await vscode.type('me');
  await until('the question behind the wait', () => kindsSince(before).includes(kAutomatic));
  await configured({});
});

test('what is there and what is wrong, the status and the log are shown', async () => {
  await vscode.command('efimd: Doctor');
  await vscode.waitForText('doctor', /processor/);
  await vscode.command('efimd: Show Status');
  await vscode.waitForText('status', /parameters/);
  await vscode.command("efimd: Show the Daemon's Log");
  await vscode.waitForText('efimd.log', /\[info\]|session \d+/);
  assert.deepEqual(await vscode.toasts(), []);
});

test('a language can be left out', async () => {
  await vscode.edit('language.py', kPython);
  vscode.configure({ 'efimd.languages': { '*': true, python: false } });
  await vscode.waitForStatus(/efimd off/);
  vscode.configure({});
  await vscode.waitForStatus(/efimd.*Ready/);
});

test('a language is switched off and on by its command', async () => {
  await vscode.edit('switched.py', kPython);
  for (const said of [/efimd off/, /efimd.*Ready/, /efimd off/, /efimd.*Ready/]) {
    await vscode.command('efimd: Turn Suggestions On or Off for This Language');
    await vscode.waitForStatus(said);
  }
  await typeAtEnd('    def set(self, na');
  await vscode.waitForGhost();
  vscode.configure({});
});

test('200 keystrokes at 60 ms show nothing old and leave nothing unanswered', async () => {
  await vscode.edit('typed.txt', kPython);
  await vscode.press('Control+End');
  const from = asked();
  const ticks = () => {
    const fields = readFileSync(`/proc/${status().pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  const before_ticks = ticks();
  // Each frame that the page draws is looked at; those that differ are kept.
  await vscode.page.evaluate((source) => {
    const read = new Function(`return (${source})`)();
    window.efimdSamples = [];
    let last = '';
    const look = () => {
      const now = JSON.stringify(read());
      if (now !== last && now !== 'null') window.efimdSamples.push(now);
      last = now;
      window.efimdFrame = requestAnimationFrame(look);
    };
    look();
  }, readGhost.toString());
  for (const [i, key] of Array.from(kTyped).entries()) {
    const due = Date.now() + 60;
    if (key === '\n') await vscode.press('Enter');
    else await vscode.type(key);
    await new Promise((done) => setTimeout(done, Math.max(0, due - Date.now())));
    if (i % 20 === 19) await until('ghost text', () => vscode.ghost(), 3000).catch(() => null); // a person looks up
  }
  await until('all answers', allAnswered);
  const samples = await vscode.page.evaluate(() => {
    cancelAnimationFrame(window.efimdFrame);
    return window.efimdSamples.map((sample) => JSON.parse(sample));
  });
  const recording = readRecording(EFIMD_RECORDING);
  const known = outcomes(recording);
  const typed = Array.from(kTyped, (_, i) => (kPython + kTyped.slice(0, i + 1)).split('\n'));
  // What was typed may have come to the item's second line by then: its lines before that must be the typed ones.
  const isTyped = (sample, lines, first, at) => typed.some((text) => text.length === at + 1 && text[at] === sample.bare
    && text.slice(first, at).every((line, i) => line === lines[first + i]));
  // Where only blanks were typed, VS Code lets an item stand whose own blanks differ.
  const looksLike = ({ line, bare }, offered) => line === offered || (bare.trim() === '' && line.trimStart() === offered.trimStart());
  const isOffered = (sample) => known.some(({ line: first, text }) => {
    const lines = text.split('\n');
    return lines.some((line, at) => at >= first
      && (sample.line === null || (looksLike(sample, line) && isTyped(sample, lines, first, at)))
      && written(lines.slice(at + 1)).join('\n').startsWith(written(sample.below).join('\n')));
  });
  const alike = (sample) => known.map(({ line, text }) => text.split('\n').slice(line)).filter((lines) => lines.includes(sample.line));
  for (const sample of samples) assert.ok(isOffered(sample), `${JSON.stringify(sample)} is none of ${JSON.stringify(alike(sample))}`);
  assert.ok(samples.length > 3, `${samples.length} states with ghost text`);
  const codes = [...recording.answers.values()].flat().filter((answer) => answer.error).map((answer) => answer.error.code);
  assert.deepEqual(codes.filter((code) => ![-32800, -32801, -32802].includes(code)), []);
  console.log(`# 200 keystrokes: ${recording.requests.size - from} requests, ${samples.length} states with ghost text, `
    + `${((ticks() - before_ticks) / 100).toFixed(2)} s of the daemon's CPU time`);
});

test('the cache view draws files, memory and latencies', async () => {
  const frame = await vscode.cacheView();
  const drawn = await frame.evaluate(() => ({
    files: [...document.querySelectorAll('.row.file .name')].map((each) => each.textContent),
    device: Number(document.querySelector('.row.file rect.device')?.getAttribute('width')),
    reused: document.querySelectorAll('rect.reused').length,
    shown: document.querySelectorAll('rect.before').length > 0 && document.querySelectorAll('rect.typed').length > 0,
    texts: [...document.querySelectorAll('.row.file .text')].map((each) => each.textContent),
    memory: document.querySelector('section.memory .row .text')?.textContent,
    points: document.querySelector('polyline.total')?.getAttribute('points').split(' ').length,
  }));
  assert.ok(drawn.files.includes('typed.txt'), drawn.files.join());
  assert.ok(drawn.device > 0 && drawn.reused > 0, JSON.stringify(drawn));
  assert.ok(drawn.shown && drawn.texts.some((text) => /shows \d+ % of the file.*: before \d+/.test(text)), JSON.stringify(drawn.texts));
  assert.match(drawn.memory, /MiB of /);
  // Of the last 200 receipts (cache_view.ts), those that took time.
  assert.equal(drawn.points, receipts().slice(-200).filter(({ totalMs }) => totalMs > 0).length);
  await vscode.command('View: Toggle Maximized Panel');
  await vscode.screenshot('cache');
  await vscode.command('View: Toggle Panel Visibility');
});

test('the cache view draws what a prompt shows of other files', async () => {
  await vscode.edit('importing.py', "from settings import Settings\n\nsettings = Settings('a.json')\n"); // settings.py is of the first test
  await typeAtEnd('settings.');
  const head = await until('a prompt with a head', async () => {
    await vscode.press('Space', 'Backspace');
    const last = () => receipts().findLast(({ uri, promptTokens }) => promptTokens > 0 && uri.endsWith('/importing.py'));
    return until('one', () => allAnswered() && last()?.head, 1000).catch(() => null); // heads are evaluated in idle time
  });
  const frame = await vscode.cacheView();
  const row = await until("the head's bar", () => frame.evaluate(() => {
    const file = [...document.querySelectorAll('.row.file')].find((each) => each.querySelector('.name').textContent === 'importing.py');
    const of = (name, attribute) => Number(file.querySelector(`rect.${name}`).getAttribute(attribute));
    return file?.querySelector('rect.head') && { from: of('head', 'x'), width: of('head', 'width'), before: of('before', 'x'), text: file.textContent };
  }));
  assert.ok(row.from === 0 && row.width > 0 && row.before === row.width, JSON.stringify(row));
  assert.ok(row.text.includes(`, and 1 other file: head ${head.tokens}, before `), `${row.text}, where ${JSON.stringify(head)} was told`);
  await vscode.command('View: Toggle Panel Visibility');
});

test('a daemon that is killed comes back without a word', async () => {
  await vscode.edit('killed.py', kPython);
  await typeAtEnd('    def set(self, na');
  process.kill(status().pid, 'SIGKILL');
  await vscode.type('me');
  await until('the next daemon', () => daemonThat('ready'));
  await vscode.type(', value):');
  await vscode.press('Enter');
  await vscode.type('self.');
  await vscode.waitForGhost();
  assert.deepEqual(await vscode.toasts(), []);
});

test('what was asked while the model was loading is asked again', async () => {
  const config = readFileSync(EFIMD_CONFIG, 'utf8');
  writeFileSync(EFIMD_CONFIG, `${config}[device]\nthreads = 1\n[cache]\nkv_type = "q8"\n`); // a model's first loading with it measures it, for a second
  await vscode.edit('loading.py', kPython);
  efimd('stop');
  const before = receipts().length;
  await vscode.press('Control+End', 'Space');
  const loading = await until('the next daemon', () => daemonThat('loading'));
  process.kill(loading, 'SIGSTOP'); // until VS Code has asked
  const requests = asked();
  await vscode.type('   def set(self, na');
  await until('a request', () => asked() > requests);
  process.kill(loading, 'SIGCONT');
  await vscode.waitForGhost('    def set(self, na');
  const reasons = receipts().slice(before).map(({ reason }) => reason ?? '');
  assert.ok(reasons.some((reason) => reason.startsWith('the model is still loading')), reasons.join());
  writeFileSync(EFIMD_CONFIG, config);
  efimd('stop');
});

test('a model is chosen from those that are there, and the daemon goes on with it', async () => {
  const models = join(HOME, '.local/share/efimd/models');
  mkdirSync(models, { recursive: true });
  copyFileSync(join(EFIMD_MODELS, 'efim-boot.gguf'), join(models, 'another.gguf'));
  await isServed('chosen.py');
  await vscode.command('efimd: Choose the Model');
  await until('the list', () => vscode.page.evaluate(() =>
    [...document.querySelectorAll('.quick-input-list .monaco-list-row')].some((row) => row.getAttribute('aria-label')?.includes('another.gguf'))));
  await vscode.type('another');
  await until('the model at the top of the list', () => vscode.page.evaluate(() =>
    document.querySelector('.quick-input-list .monaco-list-row.focused')?.getAttribute('aria-label')?.includes('another.gguf')));
  await vscode.press('Enter');
  await theToast(/another\.gguf is in use/);
  await isServed('with_another.py');
  assert.equal(status().model.path, join(models, 'another.gguf'));
  efimd('model', 'use', '--configured');
  await isServed('configured.py');
});

test("a file's cache is purged", async () => {
  const stored = () => JSON.parse(efimd('cache', 'list', '--json')).files.filter((file) => file.uri.endsWith('/purged.py') && file.tokensDisk > 0);
  await vscode.edit('purged.py', kPython.repeat(4));
  await typeAtEnd('    def set(self, na');
  await until('pages on disk', () => stored().length > 0);
  await vscode.command("efimd: Purge This File's Cache");
  await theToast(/[1-9]\d* tokens of purged\.py were removed/);
});

test('a model that fails to load is told once, however often a daemon starts', async () => {
  const config = readFileSync(EFIMD_CONFIG, 'utf8');
  writeFileSync(EFIMD_CONFIG, config.replace(/^file = .*$/m, 'file = "/no/model.gguf"'));
  await vscode.edit('failing.py', kPython);
  for (const key of ['a', 'b', 'c']) {
    efimd('stop');
    const before = asked();
    await vscode.type(key);
    await until('a request', () => asked() > before);
    await vscode.waitForStatus(/no\/model\.gguf/);
    await until('all answers', allAnswered);
    if (key === 'a') await theToast(/gives no completions: .*no\/model\.gguf/);
  }
  assert.deepEqual(await vscode.toasts(), []);
  writeFileSync(EFIMD_CONFIG, config);
  efimd('stop');
  await isServed('repaired.py');
});

test('an old daemon is told once, with what to do, and that helps', async () => {
  const old = await until('an old daemon that listens', startOldDaemon);
  try {
    await vscode.edit('old.py', kPython);
    await vscode.type('x');
    await theToast(/older efimd.*Run 'efimd stop'/);
    await vscode.type('y');
    await until('all answers', allAnswered);
    assert.deepEqual(await vscode.toasts(), []);
    efimd('stop');
    await isServed('renewed.py');
  } finally {
    old.kill();
  }
});

test('in a folder that is mounted read-only all is as everywhere', async () => {
  if (!canMount) return;
  await isServed(join(kReadOnly, 'mounted.py'));
});

test('a file over the size limit is told once, and others are served', async () => {
  const file = await vscode.edit('large.txt', 'a line of a file that is too large\n'.repeat(51 * 2 ** 20 / 35));
  assert.ok(statSync(file).size > 50 * 2 ** 20);
  await theToast(/no completions in large\.txt: .*50 MB/);
  await isServed('small.py');
  await vscode.press('Control+Tab');
  await isServed('another_small.py');
});

test('settings of the wrong type are told once, with what they must be', async () => {
  vscode.configure({ 'efimd.debounceMs': 'soon', 'efimd.maxTokens': 0 });
  await theToast(/efimd\.debounceMs must be an integer from 0 to 10000; efimd\.maxTokens must be an integer from 1 to 4096/);
  vscode.configure({});
});

test('an efimd that is not there is told once, with a way to the setting', async () => {
  vscode.configure({ 'efimd.path': '/no/efimd' });
  const item = await vscode.waitForStatus(/\/no\/efimd/);
  assert.match(item.label, /is not a program/);
  await vscode.type('x');
  await vscode.screenshot('missing');
  await theToast(/is not a program/);
  vscode.configure({});
  await vscode.waitForStatus(/efimd.*Ready/);
});

test('in a workspace that is not trusted suggestions work, and its settings start no program', async () => {
  const started = join(HOME, 'started');
  const program = join(HOME, 'another-efimd');
  writeFileSync(program, `#!/bin/sh\ntouch '${started}'\n`, { mode: 0o755 });
  mkdirSync(join(vscode.folder, '.vscode'));
  writeFileSync(join(vscode.folder, '.vscode/settings.json'), JSON.stringify({ 'efimd.path': program }));
  vscode.configure({ 'security.workspace.trust.enabled': true, 'security.workspace.trust.startupPrompt': 'never', 'security.workspace.trust.banner': 'never' });
  await vscode.page.reload();
  await until('Restricted Mode', () => vscode.page.evaluate(() => document.querySelector('.statusbar')?.textContent.includes('Restricted Mode')));
  await vscode.waitForStatus(/efimd.*Ready/);
  await isServed('untrusted.py');
  await vscode.screenshot('untrusted');
  assert.ok(!existsSync(started));
});
