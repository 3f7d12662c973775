import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function expanded(path: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
}

/** The efimd that `setting` names, or the first one that is found; undefined when there is none. */
export function findProgram(setting: string): string | undefined {
  const named = expanded(setting.trim());
  if (isAbsolute(named)) return isProgram(named) ? named : undefined;
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean);
  if (!named) folders.push(join(homedir(), '.local/bin'), '/usr/local/bin', '/usr/bin');
  return folders.map((folder) => join(folder, named || 'efimd')).find(isProgram);
}

export interface Ran {
  code: number;
  out: string;
  err: string;
}

/** One command of efimd's, for at most a minute. Never throws. */
export function run(program: string, args: string[]): Promise<Ran> {
  return new Promise((done) => {
    execFile(program, args, { timeout: 60_000, maxBuffer: 16 << 20 }, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      done({ code, out, err: err || (error && code === 1 ? error.message : '') });
    });
  });
}

/** Where the daemon writes its log (docs/configuration.md). */
export function logFile(): string {
  const env = process.env;
  return join(env['EFIMD_STATE_DIR'] || join(env['XDG_STATE_HOME'] || join(homedir(), '.local/state'), 'efimd'), 'efimd.log');
}
