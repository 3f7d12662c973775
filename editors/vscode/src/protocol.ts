// What efimd sends besides LSP (docs/protocol.md), as far as it is used here.

/** efim/state */
export interface EfimState {
  name: 'loading' | 'ready' | 'thinking' | 'failed';
  progress: number;
  message: string;
}

/** efim/receipt */
export interface EfimReceipt {
  uri: string;
  event: string;
  source: string;
  promptTokens: number;
  reusedTokens: number;
  evaluatedTokens: number;
  generatedTokens: number;
  firstTokenMs: number;
  totalMs: number;
  reason?: string;
}

export interface Tier {
  budgetBytes: number;
  usedBytes: number;
}

export interface CachedFile {
  uri: string;
  open: boolean;
  tokensDevice: number;
  tokensHost: number;
  tokensDisk: number;
  hits: number;
  misses: number;
}

/** The part of efim/status that the cache view draws. */
export interface EfimStatus {
  model?: { name?: string; windowTokens?: number };
  memory?: { device?: Tier; host?: Tier; disk?: Tier };
  files?: CachedFile[];
}

/** What the extension sends to the cache view. */
export interface CacheViewData {
  status: EfimStatus;
  receipts: EfimReceipt[];
}

export function receiptText(receipt: EfimReceipt): string {
  const count = (value: number) => value.toLocaleString('en-US');
  const cost = `${count(receipt.evaluatedTokens)} of ${count(receipt.promptTokens)} tokens evaluated, ${receipt.totalMs.toFixed(0)} ms`;
  return receipt.reason ? `${cost}; no suggestion: ${receipt.reason}` : cost;
}
