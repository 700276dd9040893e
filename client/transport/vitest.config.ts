import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitest/config';

export default defineConfig({
  // What is written and not what was built of it.
  resolve: {
    alias: { 'adk-stream-client': fileURLToPath(new URL('src/index.ts', import.meta.url)) },
  },
  test: { include: ['tests/*.test.{js,ts}'], testTimeout: 10_000 },
});
