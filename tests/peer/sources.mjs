// Real source code of this machine, by language: what Debian's packages and the peer's own npm packages brought along.
import {existsSync, readdirSync, readFileSync, statSync} from 'node:fs';
import {join} from 'node:path';

const bytesPerLanguage = 180_000;
const fileBytesMax = 60_000;
const foldersMax = 4000;

/** Files below `folder` that end with one of `endings`, in the order of their names. */
function* files(folder, endings) {
  const folders = [folder];
  for (let count = 0; folders.length > 0 && count < foldersMax; ++count) {
    const here = folders.pop();
    const entries = existsSync(here) ? readdirSync(here, {withFileTypes: true}) : [];
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      const path = join(here, entry.name);
      if (entry.isDirectory()) folders.push(path);
      if (entry.isFile() && endings.some((ending) => entry.name.endsWith(ending))) yield path;
    }
  }
}

/** Texts of one language, from the first of `folders` that has enough of it. */
function language(folders, endings) {
  const texts = [];
  let bytes = 0;
  for (const folder of folders)
    for (const path of files(folder, endings)) {
      if (bytes >= bytesPerLanguage) return texts;
      const {size} = statSync(path);
      if (size < 500 || size > fileBytesMax) continue;
      const text = readFileSync(path, 'utf8');
      if (text.includes('\ufffd')) continue;
      texts.push(text);
      bytes += size;
    }
  return texts;
}

/** {language: [text...]} for those that are there. */
export function sources(peerFolder) {
  const modules = join(peerFolder, 'node_modules');
  const all = {
    'C': language(['/usr/include/linux', '/usr/include'], ['.h']),
    'C++': language(['/usr/include/boost/asio', '/usr/include/c++'], ['.hpp', '.ipp', '.tcc']),
    'Python': language(['/usr/lib/python3.11', '/usr/lib/python3'], ['.py']),
    'JavaScript': language([modules], ['.js', '.mjs', '.cjs']),
    'TypeScript': language([modules], ['.ts']),
    'Perl': language(['/usr/share/perl'], ['.pm', '.pl']),
    'Go': language(['/usr/share/gocode'], ['.go']),
    'Rust': language(['/usr/share/cargo/registry'], ['.rs']),
  };
  return Object.fromEntries(Object.entries(all).filter(([, texts]) => texts.length > 0));
}
