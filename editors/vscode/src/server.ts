import * as vscode from 'vscode';
import { CloseAction, ErrorAction, LanguageClient, RevealOutputChannelOn, type ErrorHandler } from 'vscode-languageclient/node';
import { plain } from './plain';
import { findProgram } from './program';
import type { EfimReceipt, EfimState, EfimStatus } from './protocol';
import type { Settings } from './settings';
import type { Switches } from './switches';

/** How efimd is, as far as it is known here. */
export type Health = EfimState | { name: 'starting' | 'stopped'; progress: 0; message: '' };

export type Items = vscode.InlineCompletionItem[] | vscode.InlineCompletionList | null | undefined;

/** One that was sent, for the text of `version`, and its answer to come. */
export interface Question {
  uri: string;
  version: number;
  position: vscode.Position;
  answer: Promise<Items>;
}

// of the bridge within kRestartsWithinMs; then it stays ended, with a message to the user
const kRestartsMax = 3;
const kRestartsWithinMs = 60_000;

/**
 * The language client and its `efimd lsp`, which survives the daemon's death by itself. What is wrong is told once, with what to do; it
 * is told again only after restart().
 */
export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private told = false;
  private ends: number[] = [];
  private readonly healthChanged = new vscode.EventEmitter<Health>();
  private readonly receiptCame = new vscode.EventEmitter<EfimReceipt>();
  private readonly asked = new vscode.EventEmitter<Question>();
  readonly onHealth = this.healthChanged.event;
  readonly onQuestion = this.asked.event;
  readonly onReceipt = this.receiptCame.event;
  health: Health = { name: 'stopped', progress: 0, message: '' };

  constructor(
    private readonly settings: () => Settings,
    private readonly switches: Switches,
    private readonly output: vscode.LogOutputChannel,
  ) {}

  program(): string | undefined {
    return findProgram(this.settings().path);
  }

  async start(): Promise<void> {
    const program = this.program();
    if (!program) {
      const named = this.settings().path;
      return this.fail(named ? `${named} (the setting efimd.path) is not a program.` : 'efimd was not found on this machine.', 'Open Settings');
    }
    this.set({ name: 'starting', progress: 0, message: '' });
    const client = this.makeClient(program);
    this.client = client;
    client.onNotification('efim/state', (state: EfimState) => this.set(state));
    client.onNotification('efim/receipt', (receipt: EfimReceipt) => this.receiptCame.fire(receipt));
    try {
      await client.start();
    } catch {
      return; // told by initializationFailedHandler, or by closed()
    }
    if (!client.initializeResult?.capabilities.inlineCompletionProvider)
      return this.fail(`${program} offers no inline completion: it is older than this extension. Update it, then restart.`, 'Restart');
    if (this.health.name === 'starting') this.set({ name: 'ready', progress: 1, message: '' });
  }

  async restart(): Promise<void> {
    this.told = false;
    this.ends = [];
    await this.stop();
    await this.start();
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.dispose().catch(() => undefined); // one that never started cannot be stopped, and need not be
    this.set({ name: 'stopped', progress: 0, message: '' });
  }

  async notify(method: string, params: unknown): Promise<void> {
    if (this.client?.isRunning()) await this.client.sendNotification(method, params).catch(() => undefined);
  }

  /** efim/status; undefined while there is no daemon to ask. */
  async status(): Promise<EfimStatus | undefined> {
    if (!this.client?.isRunning()) return undefined;
    return this.client.sendRequest<EfimStatus | null>('efim/status', null).then((status) => status ?? undefined, () => undefined);
  }

  dispose(): void {
    void this.stop();
  }

  private makeClient(program: string): LanguageClient {
    const command = { command: program, args: ['lsp'] };
    return new LanguageClient('efimd', 'efimd', command, {
      documentSelector: [{ scheme: 'file' }, { scheme: 'untitled' }],
      initializationOptions: { efim: { receipts: true, state: true, ...this.settings().server } },
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      errorHandler: this.errorHandler(),
      initializationFailedHandler: (error) => {
        this.fail(`efimd did not start: ${(error as Error).message}`, 'Doctor');
        return false;
      },
      middleware: {
        provideInlineCompletionItems: async (document, position, context, token, next) => {
          const settings = this.settings();
          const automatic = context.triggerKind === vscode.InlineCompletionTriggerKind.Automatic;
          if (!this.switches.isOn(document) || (automatic && settings.trigger === 'key')) return [];
          if (automatic && settings.debounceMs > 0) await new Promise((done) => setTimeout(done, settings.debounceMs));
          if (token.isCancellationRequested) return [];
          const answer = Promise.resolve(next(document, position, context, token));
          this.asked.fire({ uri: document.uri.toString(), version: document.version, position, answer });
          return answer;
        },
      },
    });
  }

  private errorHandler(): ErrorHandler {
    return {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        const now = Date.now();
        this.ends = [...this.ends.filter((end) => now - end < kRestartsWithinMs), now];
        if (this.ends.length <= kRestartsMax) return { action: CloseAction.Restart, handled: true };
        this.fail('efimd ended again and again.', 'Doctor');
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  private set(health: Health): void {
    this.health = health;
    this.healthChanged.fire(health);
  }

  private fail(message: string, remedy: 'Open Settings' | 'Doctor' | 'Restart'): void {
    this.set({ name: 'failed', progress: 0, message });
    this.output.error(message);
    if (this.told) return;
    this.told = true;
    const command = { 'Open Settings': 'workbench.action.openSettings', Doctor: 'efimd.doctor', Restart: 'efimd.restart' }[remedy];
    void vscode.window.showErrorMessage(plain(message), remedy).then((chosen) => {
      if (chosen) void vscode.commands.executeCommand(command, ...(remedy === 'Open Settings' ? ['efimd.path'] : []));
    });
  }
}
