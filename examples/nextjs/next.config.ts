import type { NextConfig } from 'next';

const server = process.env.AGENT_SERVER ?? 'http://127.0.0.1:8000';

const config: NextConfig = {
  // Compression would hold back a stream until enough of it has come.
  compress: false,
  rewrites: async () => [{ source: '/api/:path*', destination: `${server}/api/:path*` }],
};

export default config;
