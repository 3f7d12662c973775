import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import * as vscode from 'vscode';
import { plain } from './plain';
import { run } from './program';
import type { Server } from './server';

/** Of `efimd model recommend --json`. */
interface Recommended {
  name: string;
  bytes: number;
  license: string;
  reason: string;
  path: string;
}

/** A line of `efimd model get --json`. */
type GetEvent =
  | { event: 'progress'; bytes: number; totalBytes: number }
  | { event: 'failed'; reason: string; remedy: string }
  | { event: 'offer' | 'note' | 'done' };

const kAnswered = 'modelOfferShown'; // in the extension's memory, whatever the answer was
const kGiB = 2 ** 30;

function parsed<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}

/** Loads a model with its progress in a notification, which can end it; then it is in use. */
export async function getModel(program: string, name: string): Promise<void> {
  let failure: string | undefined;
  const options = { location: vscode.ProgressLocation.Notification, title: `efimd loads ${name}`, cancellable: true };
  const loaded = await vscode.window.withProgress(options, (progress, token) => new Promise<boolean>((done) => {
    const child = spawn(program, ['model', 'get', '--json', '--use', '--yes', '--no-speed', name], { stdio: ['ignore', 'pipe', 'pipe'] });
    let shown = 0, err = '';
    token.onCancellationRequested(() => child.kill('SIGINT'));
    child.stderr.on('data', (data: Buffer) => { err = (err + data.toString()).slice(-2000); });
    createInterface(child.stdout).on('line', (line) => {
      const event = parsed<GetEvent>(line);
      if (event?.event === 'failed') failure = [event.reason, event.remedy].filter(Boolean).join('; ');
      if (event?.event !== 'progress' || event.totalBytes <= 0) return;
      const percent = 100 * event.bytes / event.totalBytes;
      progress.report({ increment: Math.max(0, percent - shown), message: `${Math.floor(percent)} % of ${(event.totalBytes / kGiB).toFixed(1)} GiB` });
      shown = Math.max(shown, percent);
    });
    child.on('error', (error) => { failure = error.message; done(false); });
    child.on('close', (code) => {
      if (code !== 0) failure ??= err.trim() || `efimd model get ended with ${code}`;
      done(code === 0 && !token.isCancellationRequested);
    });
  }));
  if (loaded) void vscode.window.showInformationMessage(plain(`efimd: ${name} is in use.`));
  else if (failure && failure !== 'interrupted') void vscode.window.showErrorMessage(plain(`efimd: ${failure}`));
}

/** Names the best model for this machine, with its size and licence, and loads it if the user wants that. */
export async function recommendModel(program: string): Promise<void> {
  const ran = await run(program, ['model', 'recommend', '--json']);
  const found = parsed<{ recommended: Recommended | null }>(ran.out);
  const best = found?.recommended;
  if (found && !best) return void vscode.window.showInformationMessage("efimd: none of the models that it knows fits into this machine's memory.");
  if (!best) return void vscode.window.showErrorMessage(plain(`efimd model recommend: ${(ran.err || ran.out).trim()}`));
  const what = `efimd recommends ${best.name} for this machine (${(best.bytes / kGiB).toFixed(1)} GiB, ${best.license}): ${best.reason}.`;
  const answer = best.path ? 'Use It' : 'Get It';
  if (await vscode.window.showInformationMessage(plain(what), answer, 'No') === answer) await getModel(program, best.name);
}

/** Offers the recommended model once, if only the bundled one is there; afterwards the command does it. */
export async function offerModel(memory: vscode.Memento, server: Server, isWanted: boolean): Promise<void> {
  const program = server.program();
  if (!isWanted || !program || memory.get(kAnswered)) return;
  const models = parsed<{ bundled: boolean }[]>((await run(program, ['model', 'list', '--json'])).out);
  if (!Array.isArray(models) || models.length === 0 || !models.every((model) => model.bundled)) return;
  await memory.update(kAnswered, true);
  await recommendModel(program);
}
