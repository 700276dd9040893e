import { afterEach, expect, test, vi } from 'vitest';

import { lookNow } from '../src/server/watch.ts';

afterEach(() => vi.unstubAllGlobals());

test('who asks while a look is under way waits for one that begins after', async () => {
  let asked = 0;
  vi.stubGlobal('document', { hidden: true });
  vi.stubGlobal('fetch', async () => {
    asked += 1;
    return Response.json({ chats: [], approvals: [] });
  });
  await Promise.all([lookNow(), lookNow(), lookNow()]);
  // Two requests each: one look, and one for both who came later.
  expect(asked).toBe(4);
});
