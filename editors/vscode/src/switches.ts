import * as vscode from 'vscode';
import type { Settings } from './settings';

/** Texts elsewhere (other schemes) are output and differences. The cells of a notebook are where the notebook is. */
const kSchemes = ['file', 'untitled'];
/** As LSP names them. */
export const kServed = kSchemes.flatMap((scheme) => [{ scheme }, { notebook: { notebookType: '*', scheme } }]);
const kServedHere: vscode.DocumentSelector = kSchemes.flatMap((scheme) => [{ scheme }, { notebookType: '*', scheme }]);

/** The cell of a notebook that has this text; undefined for a text of its own. */
function cellOf(document: vscode.TextDocument): vscode.NotebookCell | undefined {
  if (kSchemes.includes(document.uri.scheme)) return undefined;
  return vscode.workspace.notebookDocuments.flatMap((notebook) => notebook.getCells()).find((cell) => cell.document === document);
}

/** A cell's file is the notebook's. */
export function fileOf(document: vscode.TextDocument): vscode.Uri {
  return cellOf(document)?.notebook.uri ?? document.uri;
}

const isMarkup = (document: vscode.TextDocument) => cellOf(document)?.kind === vscode.NotebookCellKind.Markup;

/** Whether a document gets suggestions: the file's own switch first, then everything's, then its language's. */
export class Switches {
  private readonly files = new Map<string, boolean>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChange = this.changed.event;

  constructor(private readonly settings: () => Settings) {}

  isOn(document: vscode.TextDocument): boolean {
    const settings = this.settings();
    return this.files.get(fileOf(document).toString())
      ?? (settings.enabled && (settings.languages[document.languageId] ?? settings.languages['*'] ?? true));
  }

  /** Whether the daemon is asked. */
  asksFor(document: vscode.TextDocument): boolean {
    return this.isOn(document) && !isMarkup(document);
  }

  /** In a sentence; empty if it may get suggestions. */
  whyOff(document: vscode.TextDocument): string {
    if (vscode.languages.match(kServedHere, document) === 0) return 'Off here: only files on disk and unsaved texts get suggestions.';
    if (isMarkup(document)) return 'Off here: of a notebook only the code cells get suggestions.';
    if (!this.isOn(document)) return 'Off here.';
    const shown = vscode.workspace.getConfiguration('editor', document).get<boolean>('inlineSuggest.enabled');
    return shown === false ? 'Off here: the setting editor.inlineSuggest.enabled is off.' : '';
  }

  async toggleAll(): Promise<void> {
    if (inspect('enabled')?.workspaceValue !== undefined) return tellWorkspaceDecides('enabled');
    this.files.clear();
    await this.update('enabled', !this.settings().enabled);
  }

  async toggleLanguage(document: vscode.TextDocument): Promise<void> {
    const { languages } = this.settings();
    const name = document.languageId;
    const written = inspect<Settings['languages']>('languages');
    if (written?.workspaceValue?.[name] !== undefined) return tellWorkspaceDecides('languages');
    const on = languages[name] ?? languages['*'] ?? true;
    await this.update('languages', { ...written?.globalValue, [name]: !on });
  }

  /** Until the window closes. */
  toggleFile(document: vscode.TextDocument): void {
    this.files.set(fileOf(document).toString(), !this.isOn(document));
    this.changed.fire();
  }

  settingsChanged(): void {
    this.changed.fire();
  }

  private async update(name: string, value: unknown): Promise<void> {
    await vscode.workspace.getConfiguration('efimd').update(name, value, vscode.ConfigurationTarget.Global);
  }
}

function inspect<T>(name: string) {
  return vscode.workspace.getConfiguration('efimd').inspect<T>(name);
}

/** What is written into the user's settings would change nothing, and nothing is written into a workspace. */
function tellWorkspaceDecides(name: string): void {
  const open = 'Open Workspace Settings';
  void vscode.window.showInformationMessage(`efimd: the settings of this workspace decide efimd.${name}.`, open).then((chosen) => {
    if (chosen) void vscode.commands.executeCommand('workbench.action.openWorkspaceSettings', { query: `efimd.${name}` });
  });
}
