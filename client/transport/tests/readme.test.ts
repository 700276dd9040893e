import { readFileSync } from 'node:fs';

import * as client from 'adk-stream-client';
import { expect, test } from 'vitest';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

test('the README tells of every class and function, and imports only what there is', () => {
  const helpers = new Set([
    'CONFIRMATION_TOOL',
    'confirmedCallOf',
    'isConfirmation',
    'isSettled',
    'toolNameOf',
    'formatRecording',
  ]);
  const names = Object.keys(client).filter(name => !helpers.has(name));
  for (const name of names) expect(readme).toContain(name);
  const imported = [...readme.matchAll(/import \{([^}]*)\} from 'adk-stream-client'/g)].flatMap(
    ([, list]) => list!.split(',').map(name => name.trim()),
  );
  expect(imported.length).toBeGreaterThan(0);
  for (const name of imported) expect(client).toHaveProperty(name);
});
