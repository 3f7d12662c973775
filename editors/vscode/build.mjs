// Two bundles: the extension for VS Code's Node, and the script inside the cache view.
import { build } from 'esbuild';

const common = { bundle: true, minify: true, sourcemap: false, logLevel: 'warning' };
await build({
  ...common, entryPoints: ['src/extension.ts'], outfile: 'dist/extension.js',
  platform: 'node', format: 'cjs', target: 'node18', external: ['vscode'],
});
await build({
  ...common, entryPoints: ['src/webview/cache_view.ts'], outfile: 'dist/cache_view.js',
  platform: 'browser', format: 'iife', target: 'es2022',
});
