import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as after } from 'node:timers/promises';
import { CloseAction, ErrorAction, LanguageClient, type LanguageClientOptions } from 'vscode-languageclient/node';

const kWordsKept = 500; // characters of stderr
const kEndMaxMs = 2000; // for the process to end after it was asked to
const kWordsMaxMs = 500; // for the last of what it says; one that refuses lives on

/** Shows no notifications: Server tells what is wrong, once. */
class SilentClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** One `efimd lsp` with its language client. It ends once, and is not started again. */
export class Run {
  readonly client: LanguageClient;
  private bridge: ChildProcessWithoutNullStreams | undefined;
  private words = ''; // the last of its stderr
  private serves = false;
  private stopped = false;

  /** `onEnd`: it ended by itself after start() had succeeded. */
  constructor(program: string, options: LanguageClientOptions, onEnd: () => void) {
    this.client = new SilentClient('efimd', 'efimd', () => this.spawn(program), {
      ...options,
      initializationFailedHandler: () => false, // start() fails, and says why
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          if (this.serves && !this.stopped) onEnd();
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    });
  }

  /** Fails with the reason; then no process is left. */
  async start(): Promise<void> {
    try {
      await this.client.start();
      if (!this.client.isRunning()) throw new Error('it ended at once');
      this.serves = true;
    } catch (error) {
      const why = await this.lastWords() ?? (error instanceof Error ? error.message : String(error));
      await this.stop();
      throw new Error(why);
    }
  }

  async stop(): Promise<void> {
    this.stopped = true;
    // A client that has not started cannot be stopped, but its process can.
    const asked = await this.client.dispose().then(() => true, () => false);
    if (!asked) this.bridge?.kill();
    setTimeout(() => this.bridge?.kill('SIGKILL'), kEndMaxMs).unref();
  }

  private async spawn(program: string): Promise<ChildProcessWithoutNullStreams> {
    if (this.stopped) throw new Error('stopped');
    try {
      const bridge = spawn(program, ['lsp']);
      this.bridge = bridge;
      bridge.stderr.on('data', (data: Buffer) => { this.words = (this.words + data.toString()).slice(-kWordsKept); });
      await once(bridge, 'spawn'); // or fails with its "error"
      bridge.on('error', () => undefined); // of a signal that could not be sent
      return bridge;
    } catch (error) {
      throw new Error(`${program} cannot be run (${(error as NodeJS.ErrnoException).code})`);
    }
  }

  /** What the process said last; undefined if it lives, or never did. */
  private async lastWords(): Promise<string | undefined> {
    const bridge = this.bridge;
    if (bridge?.pid === undefined) return undefined;
    await Promise.race([new Promise((done) => bridge.once('close', done)), after(kWordsMaxMs)]);
    const how = bridge.exitCode ?? bridge.signalCode;
    return how === null ? undefined : this.words.trim() || `it ended with ${how}`;
  }
}
