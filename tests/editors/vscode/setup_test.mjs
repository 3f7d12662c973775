// VS Code after `efimd setup`, with nothing else done. Run by setup_test.py.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Workbench } from './workbench.mjs';

const { EFIMD_INSTALLED, HOME } = process.env;

const kSettings = {
  'efimd.offerModel': false,
};

let vscode;
before(async () => {
  vscode = await Workbench.open({ installed: EFIMD_INSTALLED, home: HOME, settings: kSettings, keys: [], asSetUp: true });
});
after(() => vscode?.close());

test('the next start shows a suggestion', async () => {
  await vscode.waitForStatus(/efimd.*Ready/);
  await vscode.edit('numbers.py', 'def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n');
  await vscode.press('Control+End');
  await vscode.type('    return a');
  const { ghost, below } = await vscode.waitForGhost();
  assert.ok(ghost || below.length > 0);
});
