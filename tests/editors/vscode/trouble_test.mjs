// efimd's extension where something is in the way. Run by vscode_test.py, which gives the environment and says what is in it.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Workbench, inOrder, until } from './workbench.mjs';
import { asked, daemonThat, efimd, status } from './efimd.mjs';

const { EFIMD, EFIMD_RECORDED, EFIMD_RECORDING, EFIMD_INSTALLED, EFIMD_TEXTS, HOME } = process.env;

const kSettings = {
  'efimd.path': EFIMD_RECORDED,
  'efimd.offerModel': false,
  'editor.quickSuggestions': { other: 'off', comments: 'off', strings: 'off' },
  'editor.suggestOnTriggerCharacters': false,
  'editor.parameterHints.enabled': false,
};
const kPython = readFileSync(join(EFIMD_TEXTS, 'settings.txt'), 'utf8');

let vscode;
const test = inOrder(() => vscode?.screenshot('trouble'));

before(async () => {
  vscode = await Workbench.open({ installed: EFIMD_INSTALLED, home: `${HOME}/vscode`, settings: kSettings, keys: [{ key: 'ctrl+alt+r', command: 'efimd.restart' }] });
  await vscode.waitForStatus(/efimd.*Ready/);
});
after(() => vscode?.close());

/** A program for efimd.path. */
function program(name, text) {
  const file = join(HOME, name);
  writeFileSync(file, text, { mode: 0o755 });
  return file;
}

/** This test's processes of `efimd lsp`: tests beside have others. */
function bridges() {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `${EFIMD}\0lsp\0`
        && readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HOME=${HOME}`);
    } catch {
      return false; // it has ended
    }
  });
}

function isAlive(pid) {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** What the editor and efimd said so far. */
const said = () => readFileSync(EFIMD_RECORDING, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line));

async function isServed(name) {
  await vscode.edit(name, kPython);
  await vscode.typeAtEnd('    def set(self, na', asked);
  assert.deepEqual(await vscode.ourToasts(), []);
}

test('an efimd that ends at once is told once, with what it said', async () => {
  const words = 'libefim.so: cannot open shared object file';
  vscode.configure({ 'efimd.path': program('broken', `#!/bin/sh\necho '${words}' >&2\nexit 127\n`) });
  await vscode.waitForStatus(new RegExp(words));
  await vscode.theToast(new RegExp(`^efimd did not start: ${words}$`));
  assert.deepEqual(await vscode.toasts(), []);
});

test('a program that cannot be run is told once', async () => {
  vscode.configure({ 'efimd.path': program('uninterpreted', '#!/no/interpreter\n') });
  await vscode.waitForStatus(/uninterpreted/);
  await vscode.theToast(/^efimd did not start: \S+\/uninterpreted cannot be run \(ENOENT\)$/);
  assert.deepEqual(await vscode.toasts(), []);
});

test('one that is installed later is used after the command that the message names', async () => {
  vscode.configure({ 'efimd.path': join(HOME, 'later') });
  await vscode.waitForStatus(/later/);
  await vscode.theToast(/\/later \(the setting efimd\.path\) is not a program\. .*"efimd: Restart"/);
  program('later', `#!/bin/sh\nexec '${EFIMD_RECORDED}' "$@"\n`);
  await vscode.command('efimd: Restart');
  await vscode.waitForStatus(/efimd.*Ready/);
  await isServed('later.py');
  vscode.configure({});
  await vscode.waitForStatus(/efimd.*Ready/);
});

test('one that never answers is ended when the setting changes, and the next is not blamed for it', async () => {
  const pids = join(HOME, 'silent-pid');
  vscode.configure({ 'efimd.path': program('silent', `#!/bin/sh\necho $$ > '${pids}.new'\nmv '${pids}.new' '${pids}'\nexec sleep 600\n`) });
  await vscode.waitForStatus(/efimd.*Starting/);
  const silent = Number(await until('it', () => {
    try {
      return readFileSync(pids, 'utf8');
    } catch {
      return '';
    }
  }));
  vscode.configure({});
  await vscode.waitForStatus(/efimd.*Ready/);
  await until('its end', () => !isAlive(silent));
  await isServed('after_silence.py');
  assert.match((await vscode.statusItem()).label, /Ready|Thinking/);
});

test('two restarts at once leave one efimd', async () => {
  const old = await until('one efimd lsp', () => bridges().length === 1 && bridges()[0]);
  const recorder = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${old}/status`, 'utf8'))[1]);
  process.kill(recorder, 'SIGSTOP'); // so that it takes its time to stop
  await vscode.press('Control+Alt+r', 'Control+Alt+r');
  await until('its end', () => !isAlive(old));
  await vscode.waitForStatus(/efimd.*Ready/);
  assert.equal(bridges().length, 1);
  await isServed('begun_anew.py');
});

test('an efimd lsp that ends is started again, but not for ever', async () => {
  const greeted = () => said().filter(({ message }) => message.method === 'initialized').length;
  const before = greeted() - 1;
  const ended = new Set();
  await until('the message', async () => {
    const pid = bridges().find((each) => !ended.has(each));
    if (pid && greeted() > before + ended.size) {
      process.kill(pid, 'SIGKILL');
      ended.add(pid);
    }
    return (await vscode.toasts()).length > 0;
  });
  assert.equal(ended.size, 4);
  await vscode.theToast(/ended again and again/);
  assert.deepEqual(bridges(), []);
  await vscode.command('efimd: Restart');
  await vscode.waitForStatus(/efimd.*Ready/);
  await isServed('goes_on.py');
});

test('where the workspace decides, the switches say so and write nothing', async () => {
  await vscode.edit('decided.py', kPython);
  mkdirSync(join(vscode.folder, '.vscode'), { recursive: true });
  const own = join(vscode.folder, '.vscode/settings.json');
  writeFileSync(own, JSON.stringify({ 'efimd.enabled': false, 'efimd.languages': { python: false } }));
  await vscode.waitForStatus(/efimd off/);
  await vscode.command('efimd: Turn Suggestions On or Off');
  await vscode.theToast(/settings of this workspace decide efimd\.enabled/);
  await vscode.command('efimd: Turn Suggestions On or Off for This Language');
  await vscode.theToast(/settings of this workspace decide efimd\.languages/);
  const users = JSON.parse(readFileSync(join(vscode.data, 'User/settings.json'), 'utf8'));
  assert.deepEqual([users['efimd.enabled'], users['efimd.languages']], [undefined, undefined]);
  writeFileSync(own, '{}');
  await vscode.waitForStatus(/efimd.*Ready/);
});

test('the status item says why there can be no suggestion', async () => {
  await vscode.edit('without.py', kPython);
  await vscode.waitForStatus(/efimd.*Ready/);
  vscode.configure({ '[python]': { 'editor.inlineSuggest.enabled': false } });
  await vscode.waitForStatus(/efimd off.*editor\.inlineSuggest\.enabled/);
  vscode.configure({});
  await vscode.waitForStatus(/efimd.*Ready/);
  await vscode.command('efimd: Show Status');
  await vscode.waitForStatus(/efimd off.*only files on disk and unsaved texts/);
  await vscode.command("efimd: Purge This File's Cache");
  await vscode.theToast(/only files have a cache/);
});

test('Escape closes a list first, and dismisses nothing then', async () => {
  const dismissed = () => status().sessions.reduce((sum, session) => sum + (session.dismissed ?? 0), 0);
  await isServed('list.py');
  const before = dismissed();
  await vscode.press('Control+Space');
  const list = () => vscode.page.evaluate(() => document.querySelector('.suggest-widget.visible')?.offsetHeight > 0);
  await until('the list', list);
  await vscode.screenshot('list');
  await until('ghost text beside it', () => vscode.ghost());
  await vscode.press('Escape');
  await until('the end of the list', async () => !await list());
  assert.equal(dismissed(), before);
});

test('what does not change in the cache view stays, with its tooltip', async () => {
  await isServed('viewed.py');
  const frame = await vscode.cacheView();
  await frame.evaluate(() => {
    window.messages = 0;
    window.addEventListener('message', () => { ++window.messages; });
  });
  await until('a row that stays', () => frame.evaluate(async () => {
    const row = document.querySelector('.row.file');
    const from = window.messages;
    while (window.messages < from + 2) await new Promise((done) => setTimeout(done, 50));
    return row.isConnected;
  }), 30_000);
});

test('in a narrow cache view the bars have room', async () => {
  const usual = vscode.page.viewportSize();
  const frame = await vscode.cacheView();
  await vscode.page.setViewportSize({ ...usual, width: 640 });
  const of = await until('a narrow view', () => frame.evaluate(() => {
    const width = document.getElementById('view').clientWidth;
    return width < 400 && { view: width, bars: document.querySelector('.row.file .bars').clientWidth };
  }));
  await vscode.screenshot('narrow');
  assert.ok(of.bars > of.view / 2, JSON.stringify(of));
  await vscode.page.setViewportSize(usual);
});

test('the cache view asks a daemon that does not answer once', async () => {
  const waiting = () => {
    const open = new Set();
    for (const { session, message } of said()) {
      const id = `${session}/${message.id}`;
      if (message.method === 'efim/status') open.add(id);
      else if (message.method === undefined) open.delete(id);
    }
    return open.size;
  };
  const daemon = await until('the daemon', () => daemonThat('ready'));
  const before = waiting(); // of processes that ended
  process.kill(daemon, 'SIGSTOP');
  await until('a question', () => waiting() === before + 1);
  const second = await until('a second question', () => waiting() > before + 1, 3000).catch(() => null);
  process.kill(daemon, 'SIGCONT');
  assert.equal(second, null);
  await until('the answer', () => waiting() <= before + 1);
});

test('an open cache view brings no daemon back that was stopped', async () => {
  const from = said().length;
  efimd('stop');
  await until('the answer that there is none', () => said().slice(from).some(({ message }) => message.method === undefined && message.result === null));
  assert.throws(status);
  await vscode.command('View: Toggle Panel Visibility');
});
