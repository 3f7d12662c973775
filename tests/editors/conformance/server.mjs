// `efimd lsp` behind the official client library, vscode-languageserver-protocol.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.EFIMD_EXTENSION, 'package.json'));
export const protocol = require('vscode-languageserver-protocol/node');
const { createProtocolConnection, StreamMessageReader, StreamMessageWriter } = protocol;

export class Server {
  /** Initialized, with nothing open. `encodings`: those that the client offers; `efim`: initializationOptions.efim. */
  static async start({ encodings, efim = {}, capabilities = {} } = {}) {
    const server = new Server();
    server.child = spawn(process.env.EFIMD_RECORDED, ['lsp'], { stdio: ['pipe', 'pipe', 'ignore'] });
    server.connection = createProtocolConnection(
      new StreamMessageReader(server.child.stdout), new StreamMessageWriter(server.child.stdin));
    server.registrations = [];
    server.connection.onRequest(protocol.RegistrationRequest.type, (params) => { server.registrations.push(params); });
    server.connection.onRequest(protocol.WorkDoneProgressCreateRequest.type, () => {});
    server.connection.listen();
    server.initialized = await server.connection.sendRequest(protocol.InitializeRequest.type, {
      processId: process.pid, rootUri: null, workspaceFolders: null,
      capabilities: {
        ...(encodings && { general: { positionEncodings: encodings } }),
        textDocument: { inlineCompletion: { dynamicRegistration: false } },
        window: { workDoneProgress: true },
        notebookDocument: { synchronization: {} },
        ...capabilities,
      },
      initializationOptions: { efim: { maxTokens: 24, ...efim } },
    });
    await server.connection.sendNotification(protocol.InitializedNotification.type, {});
    return server;
  }

  /** Until the model has been loaded or has failed: what is asked before is answered with nothing. */
  async loaded() {
    while ((await this.connection.sendRequest('efim/status')).state.name === 'loading');
    return this;
  }

  open(uri, text, languageId = 'python') {
    return this.connection.sendNotification(protocol.DidOpenTextDocumentNotification.type,
      { textDocument: { uri, languageId, version: 1, text } });
  }

  change(uri, version, ...contentChanges) {
    return this.connection.sendNotification(protocol.DidChangeTextDocumentNotification.type,
      { textDocument: { uri, version }, contentChanges });
  }

  ask(uri, line, character, { kind = protocol.InlineCompletionTriggerKind.Automatic, token } = {}) {
    return this.connection.sendRequest(protocol.InlineCompletionRequest.type,
      { textDocument: { uri }, position: { line, character }, context: { triggerKind: kind } }, token);
  }

  async end() {
    await this.connection.sendRequest(protocol.ShutdownRequest.type);
    const ended = new Promise((done) => this.child.on('exit', done));
    await this.connection.sendNotification(protocol.ExitNotification.type);
    return ended;
  }
}
