import * as vscode from 'vscode';

/** The user's settings. One of the wrong type is its default here and stands in `problems`. */
export interface Settings {
  path: string;
  enabled: boolean;
  languages: Record<string, boolean>;
  trigger: 'automatic' | 'key';
  debounceMs: number;
  offerModel: boolean;
  /** initializationOptions.efim: what is null is left to the daemon's configuration. */
  server: Record<string, unknown>;
  problems: string[];
}

type Rule = { what: string; holds: (value: unknown) => boolean };

const isNumber = (min: number, max: number) => (value: unknown) => typeof value === 'number' && value >= min && value <= max;
const isInteger = (min: number, max: number) => (value: unknown) => Number.isInteger(value) && isNumber(min, max)(value);
const isNull = (value: unknown) => value === null || value === undefined;

const kRules: Record<string, Rule> = {
  path: { what: 'a text', holds: (value) => typeof value === 'string' },
  enabled: { what: 'true or false', holds: (value) => typeof value === 'boolean' },
  languages: {
    what: 'an object of true and false',
    holds: (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
      && Object.values(value).every((each) => typeof each === 'boolean'),
  },
  trigger: { what: '"automatic" or "key"', holds: (value) => value === 'automatic' || value === 'key' },
  debounceMs: { what: 'an integer from 0 to 10000', holds: isInteger(0, 10000) },
  offerModel: { what: 'true or false', holds: (value) => typeof value === 'boolean' },
  maxTokens: { what: 'an integer from 1 to 4096, or null', holds: (value) => isNull(value) || isInteger(1, 4096)(value) },
  stop: { what: '"none", "line", "block" or null', holds: (value) => isNull(value) || ['none', 'line', 'block'].includes(value as string) },
  temperature: { what: 'a number from 0 to 10, or null', holds: (value) => isNull(value) || isNumber(0, 10)(value) },
};

export function readSettings(): Settings {
  const configuration = vscode.workspace.getConfiguration('efimd');
  const problems: string[] = [];
  const read = <T>(name: string): T => {
    const value = configuration.get(name);
    if (kRules[name]!.holds(value)) return value as T;
    problems.push(`efimd.${name} must be ${kRules[name]!.what}`);
    return configuration.inspect(name)?.defaultValue as T;
  };
  const server: Record<string, unknown> = {};
  for (const name of ['maxTokens', 'stop', 'temperature']) {
    const value = read<unknown>(name);
    if (!isNull(value)) server[name] = value;
  }
  const settings = {
    path: read<string>('path'), enabled: read<boolean>('enabled'), languages: read<Record<string, boolean>>('languages'),
    trigger: read<'automatic' | 'key'>('trigger'), debounceMs: read<number>('debounceMs'), offerModel: read<boolean>('offerModel'), server,
  };
  return { ...settings, problems: problems.sort() };
}
