import * as vscode from 'vscode';
import type { Items } from './server';

/**
 * Whether what is typed follows what was suggested by hand last. Then it may be asked again where else only a key asks: VS Code takes away a
 * suggestion at whose first letter nothing is answered.
 */
export class Followed {
  private uri = '';
  private items: vscode.InlineCompletionItem[] = [];

  suggested(uri: string, items: Items): void {
    this.uri = uri;
    this.items = !items ? [] : Array.isArray(items) ? items : items.items;
  }

  isBy(document: vscode.TextDocument, position: vscode.Position): boolean {
    return document.uri.toString() === this.uri && this.items.some((item) => goesOn(item, document, position));
  }
}

function goesOn({ insertText, range }: vscode.InlineCompletionItem, document: vscode.TextDocument, position: vscode.Position): boolean {
  const text = typeof insertText === 'string' ? insertText : insertText.value;
  if (!range || position.isBefore(range.start)) return false;
  if (document.offsetAt(position) - document.offsetAt(range.start) > 2 * text.length) return false; // far below; a line's end may have two characters
  const typed = document.getText(new vscode.Range(range.start, position)).replaceAll('\r\n', '\n');
  return typed.length < text.length && text.startsWith(typed);
}
