// The user's efimd beside VS Code: its commands, an old daemon, and the requests that were recorded.
import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { readRecording, unanswered } from './recording.mjs';

const { EFIMD, EFIMD_OLD_DAEMON, EFIMD_RECORDING, EFIMD_RUNTIME_DIR } = process.env;

export const efimd = (...args) => execFileSync(EFIMD, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
export const status = () => JSON.parse(efimd('status', '--json'));

/** The process of the daemon if its model's state is that; else false. */
export function daemonThat(name) {
  try {
    const { pid, state } = status();
    return state.name === name && pid;
  } catch {
    return false; // none listens
  }
}

/** An old daemon that listens; null where a new one was sooner, as when the editor had something to say still. */
export async function startOldDaemon() {
  efimd('stop');
  const old = spawn('python3', [EFIMD_OLD_DAEMON, join(EFIMD_RUNTIME_DIR, 'daemon.sock')], { stdio: ['ignore', 'pipe', 'ignore'] });
  const listens = await new Promise((done) => {
    old.stdout.once('data', () => done(true));
    old.once('exit', () => done(false));
  });
  return listens ? old : null;
}

/** The lines that are not blank: the page draws nothing readable of a blank one. */
export const written = (lines) => lines.map((line) => line.trimEnd()).filter(Boolean);
export const receipts = () => readRecording(EFIMD_RECORDING).receipts;
export const allAnswered = () => unanswered(readRecording(EFIMD_RECORDING)).length === 0;
export const asked = () => readRecording(EFIMD_RECORDING).requests.size;

export const kInvoked = 1, kAutomatic = 2; // InlineCompletionTriggerKind
export const kindsSince = (before) => [...readRecording(EFIMD_RECORDING).requests.values()].slice(before).map(({ kind }) => kind);
