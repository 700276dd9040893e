import { expect, test } from 'vitest';

import { blocksOf } from '../src/parts/blocks.ts';

test('only the last block changes as a text grows', () => {
  const [first] = blocksOf('One.\n\nTwo');
  expect(blocksOf('One.\n\nTwo and more')[0]).toBe(first);
});

test.each(['See [this][1].\n\n[1]: https://example.com', 'A note[^1].\n\n[^1]: Here.'])(
  'a link and what it leads to stay together: %j',
  text => {
    expect(blocksOf(text)).toEqual([text]);
  },
);
