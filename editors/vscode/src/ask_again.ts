import * as vscode from 'vscode';
import type { Health, Items, Question, Server } from './server';

const isServing = ({ name }: Health) => name === 'ready' || name === 'thinking';
const isNothing = (items: Items) => !items || (Array.isArray(items) ? items : items.items).length === 0;

/**
 * Asks once more when the model has loaded: what was asked before got nothing, and VS Code itself asks only at the next keystroke. It does so
 * only where the text and the cursor are still those of the last question.
 */
export class AskAgain implements vscode.Disposable {
  private question: Question | undefined;
  private wasServing = false;
  private readonly subscriptions: vscode.Disposable[];

  constructor(server: Server) {
    this.subscriptions = [
      server.onQuestion((question) => { this.question = question; }),
      server.onHealth((health) => {
        const became = isServing(health) && !this.wasServing;
        this.wasServing = isServing(health);
        if (became) void this.again();
      }),
    ];
  }

  dispose(): void {
    this.subscriptions.forEach((each) => each.dispose());
  }

  private async again(): Promise<void> {
    const question = this.question;
    const answer = await question?.answer.catch(() => undefined);
    if (!question || question !== this.question || !isNothing(answer) || !isHere(question)) return;
    await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger'); // by hand: for text that did not change VS Code asks in no other way
  }
}

function isHere({ uri, version, position }: Question): boolean {
  const editor = vscode.window.activeTextEditor;
  return editor !== undefined && editor.document.uri.toString() === uri && editor.document.version === version
    && editor.selections.length === 1 && editor.selection.isEmpty && editor.selection.active.isEqual(position);
}
