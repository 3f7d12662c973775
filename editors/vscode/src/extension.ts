// efimd for VS Code: starts `efimd lsp`, shows what it says. The daemon and VS Code decide what is
// suggested, and when.
import * as vscode from 'vscode';
import { AskAgain } from './ask_again';
import { CacheView } from './cache_view';
import { registerCommands } from './commands';
import { tellLargeFiles } from './large_files';
import { offerModel } from './model_offer';
import { plain } from './plain';
import { Server } from './server';
import { readSettings, type Settings } from './settings';
import { StatusItem } from './status_item';
import { Switches } from './switches';

let server: Server | undefined;

function tellProblems(problems: string[]): void {
  if (problems.length === 0) return;
  void vscode.window.showWarningMessage(plain(`${problems.join('; ')}. The default is used.`), 'Open Settings').then((chosen) => {
    if (chosen) void vscode.commands.executeCommand('workbench.action.openSettings', 'efimd.');
  });
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  let settings = readSettings();
  const output = vscode.window.createOutputChannel('efimd', { log: true });
  const switches = new Switches(() => settings);
  const started = new Server(() => settings, switches, output);
  server = started;

  const focus = (editor: vscode.TextEditor | undefined) => {
    if (editor) void started.notify('efim/didFocus', { textDocument: { uri: editor.document.uri.toString() } });
  };
  const cacheView = new CacheView(context.extensionUri, started);
  context.subscriptions.push(
    output, started, new StatusItem(started, switches), new AskAgain(started), cacheView, ...registerCommands(started, switches),
    vscode.window.registerWebviewViewProvider('efimd.cache', cacheView),
    tellLargeFiles(),
    vscode.window.onDidChangeActiveTextEditor(focus),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (!event.affectsConfiguration('efimd')) return;
      const before = settings;
      settings = readSettings();
      switches.settingsChanged();
      if (settings.problems.join() !== before.problems.join()) tellProblems(settings.problems);
      const asStarted = ({ path, server }: Settings) => JSON.stringify({ path, server });
      if (asStarted(settings) !== asStarted(before)) void started.restart();
    }),
  );
  tellProblems(settings.problems);
  await started.start();
  focus(vscode.window.activeTextEditor);
  void offerModel(context.globalState, started, settings.offerModel);
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
