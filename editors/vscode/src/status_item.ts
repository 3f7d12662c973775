import * as vscode from 'vscode';
import { receiptText, type EfimReceipt } from './protocol';
import type { Health, Server } from './server';
import type { Switches } from './switches';

const kThinkingShownAfterMs = 150; // most answers are there by then; the item need not flicker for them

/** "efimd" in the status bar: ready, thinking, loading, off or failed; the tooltip has the last receipt. */
export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('efimd.status', vscode.StatusBarAlignment.Right, 100);
  private readonly subscriptions: vscode.Disposable[];
  private receipt: EfimReceipt | undefined;
  private thinking: NodeJS.Timeout | undefined;

  constructor(private readonly server: Server, private readonly switches: Switches) {
    this.item.name = 'efimd';
    this.item.command = 'efimd.menu';
    this.subscriptions = [
      server.onHealth((health) => this.changed(health)),
      server.onReceipt((receipt) => {
        this.receipt = receipt;
        this.draw();
      }),
      switches.onChange(() => this.draw()),
      vscode.window.onDidChangeActiveTextEditor(() => this.draw()),
      vscode.workspace.onDidOpenTextDocument(() => this.draw()), // also in another language
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('editor.inlineSuggest')) this.draw();
      }),
    ];
    this.draw();
    this.item.show();
  }

  dispose(): void {
    clearTimeout(this.thinking);
    this.subscriptions.forEach((each) => each.dispose());
    this.item.dispose();
  }

  private changed(health: Health): void {
    clearTimeout(this.thinking);
    if (health.name === 'thinking') this.thinking = setTimeout(() => this.draw(), kThinkingShownAfterMs);
    else this.draw();
  }

  private draw(): void {
    const health = this.server.health;
    const document = vscode.window.activeTextEditor?.document;
    const off = document && this.switches.whyOff(document);
    const [icon, text, what] = health.name !== 'failed' && off ? ['circle-slash', 'efimd off', off] : describe(health);
    this.item.text = `$(${icon}) ${text}`;
    this.item.backgroundColor = health.name === 'failed' ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    this.item.tooltip = [what, this.receipt && receiptText(this.receipt)].filter(Boolean).join('\n');
    this.item.accessibilityInformation = { label: `efimd: ${what}`, role: 'button' };
  }
}

function describe(health: Health): [icon: string, text: string, what: string] {
  switch (health.name) {
    case 'ready': return ['check', 'efimd', 'Ready.'];
    case 'thinking': return ['sync~spin', 'efimd', 'Thinking.'];
    case 'loading': return ['loading~spin', `efimd ${(health.progress * 100).toFixed(0)}%`, 'Loading the model.'];
    case 'starting': return ['loading~spin', 'efimd', 'Starting.'];
    case 'stopped': return ['circle-slash', 'efimd', 'Stopped.'];
    case 'failed': return ['error', 'efimd', health.message];
  }
}
