// What lsp_recorder.py wrote down, read again: lines of {"from": "editor" | "server", "message"}.
import { readFileSync } from 'node:fs';

/** The offset of an LSP position; positions of VS Code are UTF-16, as JavaScript's. */
function offsetOf(text, position) {
  const lines = text.split('\n');
  return lines.slice(0, position.line).reduce((sum, line) => sum + line.length + 1, 0) + position.character;
}

function replaced(text, range, inserted) {
  return text.slice(0, offsetOf(text, range.start)) + inserted + text.slice(offsetOf(text, range.end));
}

/** {requests: id -> {uri, text, position}, answers: id -> [message]} of inline completion so far. */
export function readRecording(file) {
  const texts = new Map();
  const requests = new Map();
  const answers = new Map();
  let run = 0; // a client that starts again counts its requests from 0 again
  for (const line of readFileSync(file, 'utf8').split('\n').filter(Boolean)) {
    const { from, message } = JSON.parse(line);
    const { method, params, id } = message;
    if (from === 'server') {
      if (method === undefined) answers.set(`${run}/${id}`, [...(answers.get(`${run}/${id}`) ?? []), message]);
    } else if (method === 'initialize') {
      ++run;
    } else if (method === 'textDocument/didOpen') {
      texts.set(params.textDocument.uri, params.textDocument.text);
    } else if (method === 'textDocument/didChange') {
      const uri = params.textDocument.uri;
      for (const change of params.contentChanges)
        texts.set(uri, change.range ? replaced(texts.get(uri), change.range, change.text) : change.text);
    } else if (method === 'textDocument/inlineCompletion') {
      const uri = params.textDocument.uri;
      requests.set(`${run}/${id}`, { uri, text: texts.get(uri), position: params.position });
    }
  }
  return { requests, answers };
}

/** Ids of requests that have not exactly one answer. */
export function unanswered({ requests, answers }) {
  return [...requests.keys()].filter((id) => answers.get(id)?.length !== 1);
}

/** The items that were answered: where each begins, and the text that there would be with it. */
export function outcomes({ requests, answers }) {
  return [...requests].flatMap(([id, { text }]) => (answers.get(id) ?? []).flatMap((answer) =>
    (answer.result?.items ?? []).map((item) => ({ line: item.range.start.line, text: replaced(text, item.range, item.insertText) }))));
}
