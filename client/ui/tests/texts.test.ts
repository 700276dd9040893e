import { expect, test } from 'vitest';

import { en } from '../src/texts/en.ts';
import { ja } from '../src/texts/ja.ts';

test('the languages say the same things', () => {
  expect(Object.keys(ja).sort()).toEqual(Object.keys(en).sort());
  expect(ja.examples).toHaveLength(en.examples.length);
});
