// The page of the cache view: draws what the extension sends. Everything is text and SVG made here; nothing is fetched.
import type { CachedFile, CacheViewData, EfimReceipt, Tier } from '../protocol';

declare function acquireVsCodeApi(): { postMessage(message: unknown): void };

const kFilesShown = 40;
const kPlot = { width: 600, height: 90 };

type Children = (Node | string)[];

function element(name: string, className: string, ...children: Children): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  made.append(...children);
  return made;
}

function svg(name: string, attributes: Record<string, string | number>, ...children: Children): SVGElement {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** A bar of `total`, filled from the left with [class, amount] parts. */
function bar(total: number, parts: [className: string, amount: number][], label: string): SVGElement {
  let x = 0;
  const rects = parts.filter(([, amount]) => amount > 0).map(([className, amount]) => {
    const width = Math.min(100 - x, (100 * amount) / Math.max(total, 1));
    const rect = svg('rect', { class: className, x, y: 0, width, height: 10 });
    x += width;
    return rect;
  });
  const ground = svg('rect', { class: 'ground', x: 0, y: 0, width: 100, height: 10 });
  return svg('svg', { class: 'bar', viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': label }, ground, ...rects);
}

function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${value.toFixed(unit === 0 ? 0 : 1)} ${units[unit]}`;
}

function memory(tiers: Record<string, Tier | undefined>): HTMLElement {
  const rows = Object.entries(tiers).filter(([, tier]) => tier && tier.budgetBytes > 0).map(([name, tier]) => {
    const text = `${bytes(tier!.usedBytes)} of ${bytes(tier!.budgetBytes)}`;
    return element('div', 'row', element('span', 'name', name), bar(tier!.budgetBytes, [[name, tier!.usedBytes]], text), element('span', 'text', text));
  });
  return element('section', 'memory', element('h2', '', 'Memory'), ...rows);
}

function fileName(uri: string): string {
  const path = uri.slice(uri.lastIndexOf('/') + 1);
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** What the prompt of a request showed, from its beginning on; nothing if no model of this machine saw it. */
function shownParts(receipt: EfimReceipt): [className: string, amount: number][] {
  const { window, head } = receipt;
  if (!window) return [];
  return [['head', head?.tokens ?? 0], ['before', window.before], ['typed', window.typed], ['after', window.after]];
}

function shownText(receipt: EfimReceipt): string {
  const parts = shownParts(receipt).filter(([, amount]) => amount > 0).map(([name, amount]) => `${name} ${amount}`);
  if (parts.length === 0) return '';
  const others = receipt.head ? `, and ${receipt.head.files} other file${receipt.head.files === 1 ? '' : 's'}` : '';
  return `shows ${(100 * receipt.window!.shown).toFixed(0)} % of the file${others}: ${parts.join(', ')}`;
}

function fileRow(file: CachedFile, windowTokens: number, last: EfimReceipt | undefined): HTMLElement {
  const held = `${file.tokensDevice} tokens on the device, ${file.tokensHost} in memory, ${file.tokensDisk} on disk`;
  const window = Math.max(windowTokens, file.tokensDevice + file.tokensHost + file.tokensDisk, last?.promptTokens ?? 0);
  const name = element('span', file.open ? 'name open' : 'name', fileName(file.uri));
  name.title = file.uri;
  const tiers = bar(window, [['device', file.tokensDevice], ['host', file.tokensHost], ['disk', file.tokensDisk]], held);
  const said = last ? `last: ${last.reusedTokens} reused, ${last.evaluatedTokens} evaluated` : '';
  const request = bar(window, last ? [['reused', last.reusedTokens], ['evaluated', last.evaluatedTokens]] : [], said);
  const bars = element('div', 'bars', tiers, request);
  const text = element('span', 'text', held, element('br', ''), said);
  const shown = last ? shownText(last) : '';
  if (last && shown) {
    bars.append(bar(window, shownParts(last), shown));
    text.append(element('br', ''), shown);
  }
  return element('div', 'row file', name, bars, text);
}

function files(data: CacheViewData): HTMLElement {
  const windowTokens = data.status.model?.windowTokens ?? 0;
  const lastOf = (uri: string) => data.receipts.findLast((receipt) => receipt.uri === uri && receipt.promptTokens > 0);
  const list = data.status.files ?? [];
  const rows = list.slice(0, kFilesShown).map((file) => fileRow(file, windowTokens, lastOf(file.uri)));
  if (list.length > kFilesShown) rows.push(element('p', '', `and ${list.length - kFilesShown} more`));
  return element('section', 'files', element('h2', '', `Files, each of a window of ${windowTokens} tokens`), ...rows);
}

/** Milliseconds of the last answers, oldest on the left: to the first token, and to the end. */
function latencies(receipts: EfimReceipt[]): HTMLElement {
  const answered = receipts.filter((receipt) => receipt.totalMs > 0);
  const most = Math.max(10, ...answered.map((receipt) => receipt.totalMs));
  const x = (i: number) => (answered.length < 2 ? 0 : (i * kPlot.width) / (answered.length - 1));
  const line = (className: string, of: (receipt: EfimReceipt) => number) => svg('polyline', {
    class: className, points: answered.map((each, i) => `${x(i).toFixed(1)},${(kPlot.height * (1 - of(each) / most)).toFixed(1)}`).join(' '),
  });
  const plot = svg('svg', { class: 'plot', viewBox: `0 0 ${kPlot.width} ${kPlot.height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'latencies' },
    line('total', (receipt) => receipt.totalMs), line('first', (receipt) => receipt.firstTokenMs));
  const title = `Latency of the last ${answered.length} answers, up to ${most.toFixed(0)} ms`;
  return element('section', 'latencies', element('h2', '', title), plot,
    element('p', 'legend', element('span', 'key first', 'first token'), element('span', 'key total', 'whole answer')));
}

/** Replaces only what differs: a tooltip, a selection and a screen reader's place survive in the rest. */
function renew(parent: Element, fresh: Element[]): void {
  const there = [...parent.children];
  if (there.length !== fresh.length) return parent.replaceChildren(...fresh);
  there.forEach((old, i) => {
    const now = fresh[i]!;
    if (old.isEqualNode(now)) return;
    if (old.tagName === 'SECTION' && old.className === now.className) renew(old, [...now.children]);
    else old.replaceWith(now);
  });
}

window.addEventListener('message', (event: MessageEvent<CacheViewData>) => {
  const data = event.data;
  const tiers = { device: data.status.memory?.device, host: data.status.memory?.host, disk: data.status.memory?.disk };
  const legend = element('p', 'legend', ...['device', 'host', 'disk', 'reused', 'evaluated', 'head', 'before', 'typed', 'after'].map((name) => element('span', `key ${name}`, name)));
  renew(document.getElementById('view')!, [latencies(data.receipts), memory(tiers), files(data), legend]);
});
acquireVsCodeApi().postMessage('loaded');
