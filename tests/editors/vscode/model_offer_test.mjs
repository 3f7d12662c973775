// What efimd's extension offers where only the bundled model is. Run by vscode_model_test.py.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Workbench, until } from './workbench.mjs';

const { EFIMD, EFIMD_RECORDED, EFIMD_INSTALLED, HOME } = process.env;

const kSettings = {
  'efimd.path': EFIMD_RECORDED,
};

let vscode;
before(async () => {
  vscode = await Workbench.open({ installed: EFIMD_INSTALLED, home: `${HOME}/vscode`, settings: kSettings, keys: [] });
});
after(() => vscode?.close());

const models = () => JSON.parse(execFileSync(EFIMD, ['model', 'list', '--json'], { encoding: 'utf8' }));
const toast = (pattern) => until(`a notification ${pattern}`, async () => (await vscode.toasts()).find((text) => pattern.test(text)));
const press = (label) => vscode.page.click(`.notification-toast .monaco-button:has-text("${label}")`);

test('the recommended model is offered at the first start, with size and licence', async () => {
  const text = await toast(/efimd recommends/);
  assert.match(text, /recommends \S+ for this machine \(\d+\.\d GiB, [\w.-]+\)/);
  assert.ok(models().every((model) => model.bundled));
  await vscode.screenshot('model_offer');
});

test('after No nothing is loaded, and the next start offers nothing', async () => {
  await press('No');
  await vscode.page.reload();
  await vscode.waitForStatus(/efimd.*Ready/);
  // Whatever comes after the status would have been asked for before this command's own list.
  await vscode.command('efimd: Show Status');
  await until('the status', () => vscode.page.evaluate(() => document.querySelector('.tab.active')?.textContent.includes('status')));
  assert.ok(!(await vscode.toasts()).some((each) => /recommends/.test(each)));
  assert.ok(models().every((model) => model.bundled));
});

test('the command offers it again; a model that is wanted is loaded and used', async () => {
  await vscode.command('efimd: Recommend a Model for This Machine');
  await toast(/efimd recommends/);
  await press('Get It');
  await toast(/is in use/);
  const used = models().find((model) => model.used);
  assert.equal(used.origin, 'Hugging Face');
});

test('where no model fits, the command says that alone', async () => {
  const none = join(HOME, 'small-machine');
  writeFileSync(none, `#!/bin/sh\n[ "$1 $2" = 'model recommend' ] || exec '${EFIMD_RECORDED}' "$@"\necho '{"recommended": null, "models": []}'\n`, { mode: 0o755 });
  vscode.configure({ 'efimd.path': none });
  await until('that program', async () => {
    await vscode.command('efimd: Recommend a Model for This Machine');
    const text = await toast(/efimd/);
    await vscode.command('Notifications: Clear All Notifications');
    return /^efimd: none of the models .* fits/.test(text);
  });
});
