import type { UIMessage } from 'ai';
import { expect, test } from 'vitest';

import { withWords } from '../src/chat/words.ts';

const says = (id: string, role: 'user' | 'assistant', text = id): UIMessage => ({
  id,
  role,
  parts: [{ type: 'text', text }],
});

test('words that were stored late come before the answer to them, which stays as it is shown', () => {
  const shown = [says('u1', 'user'), says('a1', 'assistant'), says('a2', 'assistant', 'shown')];
  const stored = [says('u1', 'user'), says('a1', 'assistant'), says('u2', 'user'), says('a2', 'assistant', 'stored')];
  expect(withWords(shown, stored)).toEqual([shown[0], shown[1], stored[2], shown[2]]);
});

test('what only the page has stays last', () => {
  const shown = [says('a2', 'assistant')];
  expect(withWords(shown, [says('u2', 'user')]).map(({ id }) => id)).toEqual(['u2', 'a2']);
});

test('nothing is changed if no words are missing', () => {
  const shown = [says('u1', 'user'), says('a1', 'assistant')];
  expect(withWords(shown, [says('u1', 'user'), says('a0', 'assistant')])).toBe(shown);
});
