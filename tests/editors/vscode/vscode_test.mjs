// efimd's extension in a real VS Code page. Run by vscode_test.py, which gives the environment and says what is in it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, test as nodeTest } from 'node:test';
import { Workbench, readGhost, until } from './workbench.mjs';
import { outcomes, readRecording, unanswered } from './recording.mjs';

const { EFIMD, EFIMD_RECORDED, EFIMD_RECORDING, EFIMD_INSTALLED, HOME } = process.env;

const kSettings = {
  'efimd.path': EFIMD_RECORDED,
  'chat.disableAIFeatures': true,
  'security.workspace.trust.enabled': false,
  'workbench.startupEditor': 'none',
  'workbench.colorTheme': 'Default Dark Modern',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'telemetry.telemetryLevel': 'off',
  'extensions.ignoreRecommendations': true,
  'editor.quickSuggestions': { other: 'off', comments: 'off', strings: 'off' },
  'editor.suggestOnTriggerCharacters': false,
  'editor.parameterHints.enabled': false,
  'editor.minimap.enabled': false,
  'editor.insertSpaces': true,
  'editor.detectIndentation': false,
  '[plaintext]': { 'editor.autoClosingBrackets': 'never', 'editor.autoClosingQuotes': 'never', 'editor.autoIndent': 'none' },
};
const kPython = `class Settings:
    def __init__(self, path):
        self.path = path
        self.values = {}
        self.listeners = []

    def get(self, name, default=None):
        return self.values.get(name, default)

`;
const kCpp = `#include <vector>

int sum(const std::vector<int>& values) {
  int total = 0;
`;
const kTyped = `def remove(self, name):
    if name in self.values:
        value = self.values[name]
        del self.values[name]
        return value
    for listener in self.listeners:
        listener.removed(name)
    return None
`.slice(0, 200);

let vscode;
let failed = false;

/** One page serves all tests, in their order: behind one that failed nothing can be said. */
function test(name, body) {
  nodeTest(name, async (context) => {
    if (failed) return context.skip('a test before it failed');
    failed = true;
    try {
      await body();
    } catch (error) {
      await vscode?.screenshot('failed');
      console.log(`# said last:\n${readFileSync(EFIMD_RECORDING, 'utf8').trim().split('\n').slice(-8).join('\n')}`);
      throw error;
    }
    failed = false;
  });
}

before(async () => {
  vscode = await Workbench.open({ installed: EFIMD_INSTALLED, home: `${HOME}/vscode`, settings: kSettings });
});
after(() => vscode?.close());

const status = () => JSON.parse(execFileSync(EFIMD, ['status', '--json'], { encoding: 'utf8' }));

/** The lines that are not blank: of a blank one the page draws nothing that could be read. */
const written = (lines) => lines.map((line) => line.trimEnd()).filter(Boolean);
const asked = () => readRecording(EFIMD_RECORDING).requests.size;

/** Types `text` at the file's end and waits for ghost text. */
async function typeAtEnd(text) {
  await vscode.press('Control+End');
  // VS Code asks for inline completions some time after it has drawn its first editor.
  const before = asked();
  await until('the first request', async () => {
    await vscode.press('Space', 'Backspace');
    return asked() > before;
  });
  await vscode.type(text);
  return vscode.waitForGhost();
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

test('a word is taken by its key', async () => {
  const file = await vscode.edit('word.py', kPython);
  const typed = '    def set(self, na';
  const ghost = await typeAtEnd(typed);
  await vscode.press('Control+ArrowRight');
  await vscode.saved(file, (text) => {
    const taken = text.slice((kPython + typed).length).replace(/\)$/, ''); // VS Code may have closed the bracket
    return taken !== '' && ghost.line.startsWith(typed + taken) && ghost.line.length > (typed + taken).length;
  });
});

test('in a C++ file a bracket that VS Code closed is not doubled', async () => {
  const file = await vscode.edit('sum.cpp', kCpp);
  await vscode.press('Control+End');
  await vscode.type('  for (');
  const ghost = await vscode.waitForGhost();
  await vscode.screenshot('cpp');
  await vscode.press('Tab');
  const line = (await vscode.saved(file, (text) => text.length > `${kCpp}  for ()`.length)).split('\n')[4];
  assert.ok(line.startsWith('  for (') && line.length > '  for ()'.length, `${line}, where ${JSON.stringify(ghost)} was shown`);
  assert.equal(line.split('(').length, line.split(')').length, line);
});

test('the status item tells the last receipt', async () => {
  await vscode.page.hover('.statusbar-item[id*="efimd.status"]');
  const hover = await until('the tooltip', () => vscode.page.evaluate(() => document.querySelector('.workbench-hover-container, .monaco-hover')?.textContent));
  assert.match(hover, /\d+ of [\d,]+ tokens evaluated, \d+ ms/);
  await vscode.page.mouse.move(500, 200);
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

test('a language can be left out', async () => {
  await vscode.edit('language.py', kPython);
  vscode.configure({ 'efimd.languages': { '*': true, python: false } });
  await vscode.waitForStatus(/efimd off/);
  vscode.configure({});
  await vscode.waitForStatus(/efimd.*Ready/);
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
    if (i % 20 === 19) await until('ghost text', () => vscode.ghost(), 1500).catch(() => null); // a person looks up
  }
  await until('all answers', () => unanswered(readRecording(EFIMD_RECORDING)).length === 0);
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
  await vscode.command('efimd: Focus on Cache View');
  const frame = await until('the page of the view', async () => {
    for (const each of vscode.page.frames())
      if (await each.$('section.files .row.file').catch(() => null)) return each;
    return null;
  });
  const drawn = await frame.evaluate(() => ({
    files: [...document.querySelectorAll('.row.file .name')].map((each) => each.textContent),
    device: Number(document.querySelector('.row.file rect.device')?.getAttribute('width')),
    reused: document.querySelectorAll('rect.reused').length,
    memory: document.querySelector('section.memory .row .text')?.textContent,
    points: document.querySelector('polyline.total')?.getAttribute('points').split(' ').length,
  }));
  assert.ok(drawn.files.includes('typed.txt'), drawn.files.join());
  assert.ok(drawn.device > 0 && drawn.reused > 0, JSON.stringify(drawn));
  assert.match(drawn.memory, /MiB of /);
  assert.ok(drawn.points > 50, `${drawn.points} points`);
  await vscode.screenshot('cache');
  await vscode.command('View: Toggle Panel Visibility');
});

test('a daemon that is killed comes back without a word', async () => {
  await vscode.edit('killed.py', kPython);
  await typeAtEnd('    def set(self, na');
  process.kill(status().pid, 'SIGKILL');
  await vscode.type('me');
  await until('the next daemon', () => {
    try {
      return status().state.name === 'ready';
    } catch {
      return false;
    }
  });
  await vscode.type(', value):');
  await vscode.press('Enter');
  await vscode.type('self.');
  await vscode.waitForGhost();
  assert.deepEqual(await vscode.toasts(), []);
});

test('settings of the wrong type are told once, with what they must be', async () => {
  vscode.configure({ 'efimd.debounceMs': 'soon', 'efimd.maxTokens': 0 });
  const toasts = await until('the toast', async () => {
    const found = await vscode.toasts();
    return found.length > 0 && found;
  });
  assert.equal(toasts.length, 1, toasts.join());
  assert.match(toasts[0], /efimd\.debounceMs must be an integer from 0 to 10000; efimd\.maxTokens must be an integer from 1 to 4096/);
  vscode.configure({});
  await vscode.command('Notifications: Clear All Notifications');
});

test('an efimd that is not there is told once, with a way to the setting', async () => {
  vscode.configure({ 'efimd.path': '/no/efimd' });
  const item = await vscode.waitForStatus(/\/no\/efimd/);
  assert.match(item.label, /is no program/);
  await vscode.type('x');
  const toasts = await vscode.toasts();
  assert.equal(toasts.length, 1, toasts.join());
  await vscode.screenshot('missing');
  vscode.configure({});
  await vscode.command('Notifications: Clear All Notifications');
  await vscode.waitForStatus(/efimd.*Ready/);
});
