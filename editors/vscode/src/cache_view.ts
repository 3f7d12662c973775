import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import type { CacheViewData, EfimReceipt } from './protocol';
import type { Server } from './server';

const kReceiptsKept = 200;
const kPollMs = 1000; // while the view is visible

/** The cache view: asks the daemon for its status while somebody looks, and sends it with the last receipts to the page. */
export class CacheView implements vscode.WebviewViewProvider, vscode.Disposable {
  private readonly receipts: EfimReceipt[] = [];
  private readonly subscription: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;
  private asking = false;

  constructor(private readonly folder: vscode.Uri, private readonly server: Server) {
    this.subscription = server.onReceipt((receipt) => {
      this.receipts.push(receipt);
      if (this.receipts.length > kReceiptsKept) this.receipts.shift();
    });
  }

  dispose(): void {
    clearInterval(this.timer);
    this.subscription.dispose();
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    view.webview.options = { enableScripts: true, localResourceRoots: [this.folder] };
    view.webview.html = this.page(view.webview);
    const follow = () => {
      clearInterval(this.timer);
      if (!view.visible) return;
      void this.send(view.webview);
      this.timer = setInterval(() => void this.send(view.webview), kPollMs);
    };
    view.onDidChangeVisibility(follow);
    view.webview.onDidReceiveMessage(follow); // the page is loaded
    view.onDidDispose(() => clearInterval(this.timer));
  }

  private async send(webview: vscode.Webview): Promise<void> {
    if (this.asking) return; // a daemon that does not answer is not asked each second
    this.asking = true;
    const status = await this.server.status();
    this.asking = false;
    if (status) await webview.postMessage({ status, receipts: this.receipts } satisfies CacheViewData);
  }

  private page(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString('base64');
    const resource = (path: string) => webview.asWebviewUri(vscode.Uri.joinPath(this.folder, path)).toString();
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'">
<link rel="stylesheet" href="${resource('media/cache_view.css')}">
<title>efimd cache</title>
</head>
<body>
<main id="view"><p>No daemon is running yet.</p></main>
<script nonce="${nonce}" src="${resource('dist/cache_view.js')}"></script>
</body>
</html>`;
  }
}
