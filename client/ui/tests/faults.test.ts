import { expect, test } from 'vitest';

import { isLost, told } from '../src/chat/faults.ts';
import { refusalOf, Unreachable } from '../src/server/api.ts';

const named = (code: string, id: string) => ({ 'x-adk-stream-error': code, 'x-adk-stream-error-id': id });
const refused = (status: number, body: string, headers: Record<string, string> = {}) =>
  refusalOf(new Response(body, { status, headers }));

test('a lost network and a proxy without a server are worth another try', async () => {
  expect(isLost(new TypeError('network error'))).toBe(true);
  expect(isLost(new Unreachable())).toBe(true);
  expect(isLost(await refused(502, 'Bad Gateway'))).toBe(true);
  expect(isLost(await refused(409, 'Busy.', named('chat_busy', 'e-1')))).toBe(false);
});

test('a refusal is told in the words of the server', async () => {
  const busy = { text: 'A reply is running.', code: 'chat_busy', errorId: 'e-1' };
  const body = JSON.stringify({ error: { code: busy.code, message: busy.text, id: busy.errorId } });
  expect(told(await refused(409, busy.text, named('chat_busy', 'e-1')))).toEqual(busy);
  expect(told(await refused(409, body, named('chat_busy', 'e-1')))).toEqual(busy);
});

test('the id of an error is told once', async () => {
  const text = 'The server failed. (error e-3)';
  expect(told(await refused(500, text, named('internal', 'e-3')))).toEqual({ text, code: 'internal' });
});

test('what is no answer of the server is told by its status', async () => {
  expect(told(await refused(418, '<html>'))).toEqual({ text: 'The server answered 418.' });
});
