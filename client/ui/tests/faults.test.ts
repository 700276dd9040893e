import { APICallError } from 'ai';
import { expect, test } from 'vitest';

import { isLost, told } from '../src/chat/faults.ts';
import { Unreachable } from '../src/server/api.ts';

const refused = (statusCode: number, responseBody: string) =>
  new APICallError({ message: 'refused', url: '/', requestBodyValues: {}, statusCode, responseBody });

test('a lost network and a proxy without a server are worth another try', () => {
  expect(isLost(new TypeError('network error'))).toBe(true);
  expect(isLost(new Unreachable())).toBe(true);
  expect(isLost(refused(502, 'Bad Gateway'))).toBe(true);
  expect(isLost(refused(409, '{}'))).toBe(false);
});

test('a refusal is told in the words of the server', () => {
  const body = JSON.stringify({ error: { code: 'chat_busy', message: 'A reply is running.', id: 'e-1' } });
  expect(told(refused(409, body))).toEqual({ text: 'A reply is running.', code: 'chat_busy', errorId: 'e-1' });
});

test('what is no answer of the server is told by its status', () => {
  expect(told(refused(418, '<html>'))).toEqual({ text: 'The server answered 418.' });
});
