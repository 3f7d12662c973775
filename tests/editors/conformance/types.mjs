// Whether what a server said has the types of the official library's declarations: each message becomes a literal of its type in a file that the
// TypeScript compiler checks, unknown members included. meta_model.mjs asks the specification's metaModel the same.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const kResults = {
  initialize: 'lsp.InitializeResult',
  shutdown: 'null',
  'textDocument/inlineCompletion': 'lsp.InlineCompletionList | null',
  'workspace/executeCommand': 'lsp.LSPAny | null',
};
const kParams = {
  'window/showMessage': 'lsp.ShowMessageParams',
  'window/logMessage': 'lsp.LogMessageParams',
  'window/workDoneProgress/create': 'lsp.WorkDoneProgressCreateParams',
  '$/progress': '{ token: lsp.ProgressToken; value: lsp.WorkDoneProgressBegin | lsp.WorkDoneProgressReport | lsp.WorkDoneProgressEnd }',
};

/**
 * [what it is, its type, the value] of each of the server's messages that LSP knows; efim/... are efimd's own. `unanswered` has the
 * methods of requests without an answer.
 */
export function typedMessages(recording) {
  const asked = new Map();
  const typed = [];
  for (const { session, from, message } of recording) {
    const { id, method, params, result, error } = message;
    if (from === 'editor' && method) asked.set(`${session}/${id}`, method);
    if (from === 'editor' || method?.startsWith('efim/')) continue;
    if (method) {
      typed.push([method, kParams[method] ?? 'never', params]);
      continue;
    }
    const answered = asked.get(`${session}/${id}`);
    if (!answered) typed.push(['answer to nothing', 'never', message]);
    else if (error) typed.push([`error of ${answered}`, '{ code: lsp.integer; message: string; data?: lsp.LSPAny }', error]);
    else if (!answered.startsWith('efim/')) typed.push([`result of ${answered}`, kResults[answered] ?? 'never', result]);
    asked.delete(`${session}/${id}`); // a second answer is one to nothing
  }
  typed.unanswered = [...asked].filter(([key]) => !key.endsWith('/undefined')).map(([, method]) => method);
  return typed;
}

/** The compiler's complaints about `typed`; empty where all is well. */
export function complaints(typed, folder) {
  mkdirSync(folder, { recursive: true });
  const lines = typed.map(([what, type, value], i) => `/* ${what} */ export const message${i}: ${type} = ${JSON.stringify(value)};`);
  const file = join(folder, 'said.ts');
  writeFileSync(file, `import type * as lsp from 'vscode-languageserver-protocol/node';\n${lines.join('\n')}\n`);
  const compiler = join(process.env.EFIMD_EXTENSION, 'node_modules/typescript/bin/tsc');
  const ran = spawnSync(process.execPath, [compiler, '--ignoreConfig', '--noEmit', '--strict', '--exactOptionalPropertyTypes', '--skipLibCheck',
    '--module', 'nodenext', '--target', 'es2022', '--types', 'node', file], { encoding: 'utf8', cwd: folder });
  return ran.status === 0 ? '' : ran.stdout + ran.stderr;
}
