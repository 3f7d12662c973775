// efimd's messages besides LSP (docs/protocol.md), as far as they are used here.

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
  /** What the prompt showed of the file; absent if the model was not asked. */
  window?: { view: string; shown: number; before: number; typed: number; after: number };
  /** What it showed of other files. */
  head?: { files: number; tokens: number };
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

/** Where a suggestion is from, if not from the model alone. */
const kSources: Record<string, string> = {
  recalled: 'from your own text',
  'recalled+model': 'from your own text, and the model agrees',
};

export function receiptText(receipt: EfimReceipt): string {
  const count = (value: number) => value.toLocaleString('en-US');
  const cost = `${count(receipt.evaluatedTokens)} of ${count(receipt.promptTokens)} tokens evaluated, ${receipt.totalMs.toFixed(0)} ms`;
  if (receipt.reason) return `${cost}; no suggestion: ${receipt.reason}`;
  const source = kSources[receipt.source];
  return source ? `${cost}; ${source}` : cost;
}
