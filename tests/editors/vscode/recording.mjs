// What lsp_recorder.py wrote down, read again: lines of {"session", "from": "editor" | "server", "message"}.
import { readFileSync } from 'node:fs';

/** The offset of an LSP position; positions of VS Code are UTF-16, as JavaScript's. */
function offsetOf(text, position) {
  const lines = text.split('\n');
  return lines.slice(0, position.line).reduce((sum, line) => sum + line.length + 1, 0) + position.character;
}

function replaced(text, range, inserted) {
  return text.slice(0, offsetOf(text, range.start)) + inserted + text.slice(offsetOf(text, range.end));
}

/** {requests: id -> {uri, text, position, kind}, answers: id -> [message], receipts: [efim/receipt's params]} of inline completion so far. */
export function readRecording(file) {
  const texts = new Map();
  const opened = ({ uri, text }) => texts.set(uri, text);
  const changed = (uri, changes) => {
    for (const change of changes) texts.set(uri, change.range ? replaced(texts.get(uri), change.range, change.text) : change.text);
  };
  const requests = new Map();
  const answers = new Map();
  const receipts = [];
  for (const line of readFileSync(file, 'utf8').split('\n').slice(0, -1)) { // after the last end, a message may be half written
    const { session, from, message } = JSON.parse(line); // a client that starts again counts its requests from 0 again
    const { method, params, id } = message;
    if (from === 'server') {
      if (method === 'efim/receipt') receipts.push(params);
      if (method === undefined) answers.set(`${session}/${id}`, [...(answers.get(`${session}/${id}`) ?? []), message]);
    } else if (method === 'textDocument/didOpen') {
      opened(params.textDocument);
    } else if (method === 'textDocument/didChange') {
      changed(params.textDocument.uri, params.contentChanges);
    } else if (method === 'notebookDocument/didOpen') {
      params.cellTextDocuments.forEach(opened);
    } else if (method === 'notebookDocument/didChange') {
      const { structure, textContent } = params.change.cells ?? {};
      structure?.didOpen?.forEach(opened);
      textContent?.forEach(({ document, changes }) => changed(document.uri, changes));
    } else if (method === 'textDocument/inlineCompletion') {
      const uri = params.textDocument.uri;
      requests.set(`${session}/${id}`, { uri, text: texts.get(uri), position: params.position, kind: params.context.triggerKind });
    }
  }
  return { requests, answers, receipts };
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
