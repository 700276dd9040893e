import { fileURLToPath } from 'node:url';

import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  plugins: [react()],
  // Relative: the page is also served below a prefix.
  base: './',
  resolve: {
    alias: { 'adk-stream-client': here('../transport/src/index.ts') },
    // The package is read from its source, which has an `ai` of its own to be checked against.
    dedupe: ['ai'],
  },
  build: {
    outDir: here('../../src/adk_stream_protocol/server/static'),
    emptyOutDir: true,
    target: 'es2022',
    // A worklet as a data: address would need a wider Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The libraries in the bundle want to be named.
    license: { fileName: 'licenses.md' },
    chunkSizeWarningLimit: 1000,
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/stream', '/live', '/docs', '/openapi.json'].map(path => [
        path,
        { target: 'http://127.0.0.1:8000', ws: true },
      ]),
    ),
  },
});
