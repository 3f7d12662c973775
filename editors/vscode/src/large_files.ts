import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { plain } from './plain';

/** VS Code's own limit: it gives larger files to no extension, so that efimd never hears of them. */
const kGivenBytesMax = 50 * 2 ** 20;

/** Tells the user, once for each such file, why nothing is suggested in it. */
export function tellLargeFiles(): vscode.Disposable {
  const told = new Set<string>();
  const look = async () => {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    if (!(input instanceof vscode.TabInputText) || input.uri.scheme !== 'file' || told.has(input.uri.fsPath)) return;
    const bytes = await stat(input.uri.fsPath).then(({ size }) => size, () => 0);
    if (bytes <= kGivenBytesMax || told.has(input.uri.fsPath)) return;
    told.add(input.uri.fsPath);
    void vscode.window.showWarningMessage(`efimd: no completions in ${plain(basename(input.uri.fsPath))}: it has ${Math.round(bytes / 2 ** 20)} MB, and VS Code gives `
      + 'extensions no file over 50 MB. Split it to have completions in its parts.');
  };
  void look();
  return vscode.window.tabGroups.onDidChangeTabs(() => void look());
}
