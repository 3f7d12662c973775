/** Text for a notification: VS Code draws `[x](command:id)` there as a link, and a file may have such a name. */
export function plain(text: string): string {
  return text.replaceAll('](', '] (');
}
