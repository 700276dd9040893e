// Reads streams of chunks with the real clients. See README.md for what goes in and comes out.

import { createInterface } from 'node:readline';

import { read } from './reading.mjs';
import { load, VERSIONS } from './sdk.mjs';

const clients = await Promise.all(VERSIONS.map(async version => [version, await load(version)]));

for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const input = JSON.parse(line);
  for (const [version, client] of clients) {
    const reading = { name: input.name, version, ...(await read(client, input)) };
    process.stdout.write(`${JSON.stringify(reading)}\n`);
  }
}
