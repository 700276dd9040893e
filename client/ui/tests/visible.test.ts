import { readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { plain, visible } from '../src/approvals/visible.ts';

// The command line is held to the same file, by tests/server/test_page.py.
const pairs = JSON.parse(
  readFileSync(new URL('../../../tests/golden/hidden-characters.json', import.meta.url), 'utf8'),
) as { text: string; shown: string }[];

test.each(pairs)('a character that is not seen is named: $shown', ({ text, shown }) => {
  expect(visible(text)).toBe(shown);
});

test('a line break of a value is one', () => {
  expect(visible('two\nlines\tand\rmore')).toBe('two\nlines\tand⟦U+000D⟧more');
});

test('what is seen anyway stays as it is', () => {
  expect(visible('花子 é 👍 a\tb\nc')).toBe('花子 é 👍 a\tb\nc');
});

test('a value that is no text is shown as one', () => {
  expect([visible(5), visible(true), visible(undefined)]).toEqual(['5', 'true', 'undefined']);
});

test('a title keeps its emoji and loses what turns the line', () => {
  expect(plain('I ❤️ \u202Eyou\n')).toBe('I ❤️ you');
});
