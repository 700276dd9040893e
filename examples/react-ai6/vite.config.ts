import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const server = process.env.AGENT_SERVER ?? 'http://127.0.0.1:8000';

export default defineConfig({
  plugins: [react()],
  // The client package is linked: it is to use this page's `ai`.
  resolve: { dedupe: ['ai'] },
  // The page's own origin answers everything, so that no CORS is needed; sockets too.
  server: { host: '127.0.0.1', proxy: { '/api': { target: server, ws: true } } },
});
