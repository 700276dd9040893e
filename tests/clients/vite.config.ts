import { fileURLToPath } from 'node:url';

import { svelte } from '@sveltejs/vite-plugin-svelte';
import react from '@vitejs/plugin-react';
import vue from '@vitejs/plugin-vue';
import { defineConfig, type Plugin } from 'vite';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const PAGES = here('pages');
const NAMES: Record<string, string[]> = {
  ai6: ['cross-origin', 'elements', 'habits', 'react6', 'readme', 'svelte', 'tutorial', 'vue6'],
  ai7: [
    ...['angular', 'assistant', 'cross-origin', 'elements', 'habits'],
    ...['react', 'readme', 'svelte', 'tutorial', 'vue'],
  ],
};

/** Gives the pages the packages of ai 6; those packages keep the `ai` that they bring. */
const line6: Plugin = {
  name: 'line-6',
  enforce: 'pre',
  resolveId: {
    filter: { id: /^(ai|@ai-sdk\/(react|svelte|vue))$/ },
    handler(source, importer, options) {
      if (!importer?.startsWith(PAGES)) return null;
      return this.resolve(`${source}6`, importer, { ...options, skipSelf: true });
    },
  },
  transform: {
    filter: { code: '/api/chat?sdk=7' },
    // What the docs say about ai 6: leave it out.
    handler: code => code.replace('/api/chat?sdk=7', '/api/chat'),
  },
};

/** `vite build --mode next` builds the routes of Next.js and what serves them. */
const next = {
  logLevel: 'warn' as const,
  build: { ssr: here('next/serve.ts'), outDir: here('dist/next'), target: 'node20' },
};

/** `vite build --mode ai6` builds the pages with ai 6, `--mode ai7` with ai 7. */
export default defineConfig(({ mode }) => {
  if (mode === 'next') return next;
  return {
    root: PAGES,
    // Relative: the pages are served below a prefix.
    base: './',
    logLevel: 'warn',
    resolve: { alias: { '@ai-sdk/angular': `${PAGES}/angular/ai-sdk-angular.ts` } },
    plugins: [...(mode === 'ai6' ? [line6] : []), react(), vue(), svelte()],
    build: {
      outDir: here(`dist/${mode}`),
      emptyOutDir: true,
      target: 'es2022',
      chunkSizeWarningLimit: 10_000,
      rolldownOptions: {
        input: Object.fromEntries(NAMES[mode]!.map(name => [name, `${PAGES}/${name}/index.html`])),
      },
    },
  };
});
