import { basename } from 'node:path';
import * as vscode from 'vscode';
import { recommendModel } from './model_offer';
import { plain } from './plain';
import { logFile, run } from './program';
import type { Server } from './server';
import { fileOf, type Switches } from './switches';

const kMenu: [command: string, title: string][] = [
  ['efimd.toggle', 'Turn suggestions on or off'],
  ['efimd.toggleLanguage', 'Turn suggestions on or off for this language'],
  ['efimd.toggleFile', 'Turn suggestions on or off for this file'],
  ['efimd.showStatus', 'Show status'],
  ['efimd.doctor', 'Doctor: check this machine, and say what is wrong'],
  ['efimd.cache.focus', 'Show the cache'],
  ['efimd.chooseModel', 'Choose the model'],
  ['efimd.recommendModel', 'Recommend a model for this machine, and get it'],
  ['efimd.purgeFile', "Purge this file's cache"],
  ['efimd.showLog', "Show the daemon's log"],
  ['efimd.restart', 'Restart'],
];

/** Of `efimd model list --json`. */
interface ListedModel {
  path: string;
  used: boolean;
}

/** What efimd's commands print, as read-only texts. */
class Reports implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? '';
  }

  async show(name: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: 'efimd', path: name });
    this.texts.set(uri.path, text);
    this.changed.fire(uri);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
  }
}

export function registerCommands(server: Server, switches: Switches): vscode.Disposable[] {
  const reports = new Reports();

  /** Runs efimd; undefined after the user was told why not. */
  async function efimd(...args: string[]): Promise<string | undefined> {
    const program = server.program();
    const ran = program ? await run(program, args) : { code: 127, out: '', err: 'efimd was not found; see the setting efimd.path.' };
    if (ran.code === 0) return ran.out;
    void vscode.window.showErrorMessage(plain(`efimd ${args[0]}: ${(ran.err || ran.out).trim()}`));
    return undefined;
  }

  async function report(...args: string[]): Promise<void> {
    const program = server.program();
    if (!program) return void (await efimd(...args));
    const ran = await run(program, args); // a report of what is wrong ends with 1
    await reports.show(args.join(' '), ran.out + ran.err);
  }

  function document(): vscode.TextDocument | undefined {
    const found = vscode.window.activeTextEditor?.document;
    if (!found) void vscode.window.showInformationMessage('efimd: no file is open.');
    return found;
  }

  async function chooseModel(): Promise<void> {
    const listed = await efimd('model', 'list', '--json');
    if (listed === undefined) return;
    const items = (JSON.parse(listed) as ListedModel[]).map((model) => ({
      label: basename(model.path), description: model.used ? 'in use' : '', detail: model.path,
    }));
    const chosen = await vscode.window.showQuickPick(items, { placeHolder: 'The model that makes suggestions' });
    if (chosen && await efimd('model', 'use', chosen.detail) !== undefined) // the next keystroke starts the daemon anew
      void vscode.window.showInformationMessage(plain(`efimd: ${chosen.label} is in use.`));
  }

  async function purgeFile(): Promise<void> {
    const active = document();
    const file = active && fileOf(active);
    if (file && file.scheme !== 'file') return void vscode.window.showInformationMessage('efimd: only files have a cache.');
    const purged = file && await efimd('cache', 'purge', '--json', '--', file.fsPath);
    if (!purged) return;
    const { tokens } = JSON.parse(purged) as { tokens: number };
    void vscode.window.showInformationMessage(`efimd: ${tokens} tokens of ${plain(vscode.workspace.asRelativePath(file))} were removed from memory and disk. `
      + 'It stays off the disk until it is opened again.');
  }

  async function showLog(): Promise<void> {
    await vscode.window.showTextDocument(vscode.Uri.file(logFile()), { preview: true })
      .then(undefined, () => vscode.window.showInformationMessage(`efimd: there is no log yet: ${logFile()}`));
  }

  async function menu(): Promise<void> {
    const items = kMenu.map(([command, label]) => ({ label, command }));
    const chosen = await vscode.window.showQuickPick(items, { placeHolder: 'efimd' });
    if (chosen) await vscode.commands.executeCommand(chosen.command);
  }

  /** By Escape: the daemon is told, so that it is not suggested there again. */
  async function dismiss(): Promise<void> {
    const file = vscode.window.activeTextEditor?.document;
    if (file) await server.notify('efim/didDismiss', { textDocument: { uri: file.uri.toString() } });
    await vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
  }

  const handlers: Record<string, () => unknown> = {
    'efimd.toggle': () => switches.toggleAll(),
    'efimd.toggleLanguage': () => { const file = document(); return file && switches.toggleLanguage(file); },
    'efimd.toggleFile': () => { const file = document(); return file && switches.toggleFile(file); },
    'efimd.showStatus': () => report('status'),
    'efimd.doctor': () => report('doctor'),
    'efimd.showLog': showLog,
    'efimd.purgeFile': purgeFile,
    'efimd.chooseModel': chooseModel,
    'efimd.recommendModel': () => {
      const program = server.program();
      return program ? recommendModel(program) : efimd('model');
    },
    'efimd.restart': () => server.restart(),
    'efimd.menu': menu,
    'efimd.dismiss': dismiss,
  };
  return [
    vscode.workspace.registerTextDocumentContentProvider('efimd', reports),
    ...Object.entries(handlers).map(([name, handler]) => vscode.commands.registerCommand(name, handler)),
  ];
}
