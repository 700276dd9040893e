// vite.config.ts
import { defineConfig } from 'vite';

export default defineConfig({
  server: { proxy: { '/api': process.env.AGENT_SERVER ?? 'http://127.0.0.1:8000' } },
});
