import * as vscode from 'vscode';
import { RevealOutputChannelOn, type LanguageClientOptions } from 'vscode-languageclient/node';
import { Followed } from './followed';
import { plain } from './plain';
import { findProgram } from './program';
import type { EfimReceipt, EfimState, EfimStatus } from './protocol';
import { Run } from './run';
import type { Settings } from './settings';
import { kServed, type Switches } from './switches';

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
 * The run of `efimd lsp`, which survives the daemon's death by itself; one that ends is followed by the next. What is wrong is told once, with
 * what to do; it is told again only after restart(). An earlier run says nothing any more.
 */
export class Server implements vscode.Disposable {
  private current: Run | undefined;
  private stops = 0;
  private told = false;
  private ends: number[] = [];
  private readonly followed = new Followed();
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
      const what = named ? `${named} (the setting efimd.path) is not a program. Change the setting, or put efimd there`
        : 'efimd was not found on this machine. Name it in the setting efimd.path, or install it';
      return this.fail(`${what} and run the command "efimd: Restart".`, 'Open Settings');
    }
    this.set({ name: 'starting', progress: 0, message: '' });
    const run: Run = new Run(program, this.options(), () => this.ended(run));
    this.current = run;
    run.client.onNotification('efim/state', (state: EfimState) => { if (this.current === run) this.set(state); });
    run.client.onNotification('efim/receipt', (receipt: EfimReceipt) => this.receiptCame.fire(receipt));
    try {
      await run.start();
    } catch (error) {
      if (this.current === run) this.fail(`efimd did not start: ${(error as Error).message}`, 'Doctor');
      return;
    }
    if (this.current !== run) return;
    if (!run.client.initializeResult?.capabilities.inlineCompletionProvider)
      return this.fail(`${program} offers no inline completion: it is older than this extension. Update it, then restart.`, 'Restart');
    if (this.health.name === 'starting') this.set({ name: 'ready', progress: 1, message: '' });
  }

  async restart(): Promise<void> {
    this.told = false;
    this.ends = [];
    const stopping = this.stop();
    const stop = this.stops;
    await stopping;
    if (stop === this.stops) await this.start(); // else whoever stopped it since then decides
  }

  async stop(): Promise<void> {
    ++this.stops;
    const run = this.current;
    this.current = undefined;
    this.set({ name: 'stopped', progress: 0, message: '' });
    await run?.stop();
  }

  async notify(method: string, params: unknown): Promise<void> {
    const client = this.current?.client;
    if (client?.isRunning()) await client.sendNotification(method, params).catch(() => undefined);
  }

  /** efim/status; undefined while there is no daemon to ask. */
  async status(): Promise<EfimStatus | undefined> {
    const client = this.current?.client;
    if (!client?.isRunning()) return undefined;
    return client.sendRequest<EfimStatus | null>('efim/status', null).then((status) => status ?? undefined, () => undefined);
  }

  dispose(): void {
    void this.stop();
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: kServed,
      initializationOptions: { efim: { receipts: true, state: true, ...this.settings().server } },
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: {
        provideInlineCompletionItems: async (document, position, context, token, next) => {
          const settings = this.settings();
          const automatic = context.triggerKind === vscode.InlineCompletionTriggerKind.Automatic;
          if (!this.switches.asksFor(document)) return [];
          if (automatic && settings.trigger === 'key' && !this.followed.isBy(document, position)) return [];
          if (automatic && settings.debounceMs > 0) await new Promise((done) => setTimeout(done, settings.debounceMs));
          if (token.isCancellationRequested) return [];
          const answer = Promise.resolve(next(document, position, context, token));
          const uri = document.uri.toString();
          this.asked.fire({ uri, version: document.version, position, answer });
          if (!automatic) void answer.then((items) => this.followed.suggested(uri, items), () => undefined);
          return answer;
        },
      },
    };
  }

  private ended(run: Run): void {
    if (this.current !== run) return;
    const now = Date.now();
    this.ends = [...this.ends.filter((end) => now - end < kRestartsWithinMs), now];
    if (this.ends.length <= kRestartsMax) void this.start();
    else this.fail('efimd ended again and again.', 'Doctor');
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
