import * as vscode from 'vscode';
import type { Settings } from './settings';

/** Whether a document gets suggestions: the file's own switch first, then everything's, then its language's. */
export class Switches {
  private readonly files = new Map<string, boolean>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChange = this.changed.event;

  constructor(private readonly settings: () => Settings) {}

  isOn(document: vscode.TextDocument): boolean {
    const settings = this.settings();
    return this.files.get(document.uri.toString())
      ?? (settings.enabled && (settings.languages[document.languageId] ?? settings.languages['*'] ?? true));
  }

  async toggleAll(): Promise<void> {
    this.files.clear();
    await this.update('enabled', !this.settings().enabled);
  }

  async toggleLanguage(document: vscode.TextDocument): Promise<void> {
    const settings = this.settings();
    const on = settings.languages[document.languageId] ?? settings.languages['*'] ?? true;
    await this.update('languages', { ...settings.languages, [document.languageId]: !on });
  }

  /** Until the window closes. */
  toggleFile(document: vscode.TextDocument): void {
    this.files.set(document.uri.toString(), !this.isOn(document));
    this.changed.fire();
  }

  settingsChanged(): void {
    this.changed.fire();
  }

  private async update(name: string, value: unknown): Promise<void> {
    await vscode.workspace.getConfiguration('efimd').update(name, value, vscode.ConfigurationTarget.Global);
  }
}
