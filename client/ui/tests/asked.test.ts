import type { UIMessage } from 'ai';
import { expect, test } from 'vitest';

import { asksOf, callsAskedFor, cardsOf, textOf, type ToolPart } from '../src/chat/asked.ts';
import { stateOf } from '../src/parts/toolState.ts';
import type { Card } from '../src/server/api.ts';

const message = (...parts: object[]): UIMessage => ({
  id: 'm',
  role: 'assistant',
  parts: parts as UIMessage['parts'],
});
const payment = (rest: object) => ({
  type: 'tool-process_payment',
  toolCallId: 'call-1',
  input: { amount: 50 },
  ...rest,
});
const confirmation = (rest: object) => ({
  type: 'tool-adk_request_confirmation',
  toolCallId: 'confirm-1',
  input: {
    originalFunctionCall: { id: 'call-1', name: 'process_payment', args: { amount: 50 } },
    toolConfirmation: { hint: 'Sure?', confirmed: false },
  },
  ...rest,
});

test('an approval of the AI SDK asks with its own id', () => {
  const [asked] = asksOf(message(payment({ state: 'approval-requested', approval: { id: 'a-1' } })));
  expect(asked).toMatchObject({ approvalId: 'a-1', callId: 'call-1', toolName: 'process_payment' });
});

test('a confirmation of ADK asks for the call that it names', () => {
  const asking = message(
    payment({ state: 'input-available', providerExecuted: true }),
    confirmation({ state: 'input-available' }),
  );
  expect(asksOf(asking)).toMatchObject([
    { approvalId: 'confirm-1', callId: 'call-1', toolName: 'process_payment', input: { amount: 50 }, hint: 'Sure?' },
  ]);
  expect(callsAskedFor(asking)).toEqual(new Set(['call-1']));
});

test.each([
  payment({ state: 'approval-responded', approval: { id: 'a-1', approved: true } }),
  payment({ state: 'output-available', output: {} }),
  confirmation({ state: 'output-available', output: { confirmed: true } }),
])('what was answered asks no more (%#)', part => {
  expect(asksOf(message(part))).toEqual([]);
});

test('a card is found by its call', () => {
  const card = { toolCallId: 'call-1', toolName: 'process_payment', status: 'pending' };
  expect(cardsOf(message({ type: 'data-approval', id: 'a-1', data: card })).get('call-1')).toEqual(card);
});

test('the text of a message is that of its text parts', () => {
  const said = message({ type: 'text', text: 'One.' }, payment({ state: 'input-available' }), { type: 'text', text: 'Two.' });
  expect(textOf(said)).toBe('One.\n\nTwo.');
});

test.each([
  ['expired', 'expired'],
  ['cancelled', 'cancelled'],
  ['unknown', 'unknown'],
  ['failed', 'failed'],
] as const)('an error of a call that is %s in the ledger is called %s', (status, state) => {
  const part = payment({ state: 'output-error', errorText: 'no' }) as unknown as ToolPart;
  expect(stateOf(part, { status } as Card, false)).toBe(state);
});

test.each([
  [{ confirmed: false }, 'denied'],
  [{ confirmed: false, outcome: 'expired' }, 'expired'],
  [{ confirmed: false, outcome: 'cancelled' }, 'cancelled'],
  [{ confirmed: true }, 'failed'],
])('in the profile adk, a call that ended with an error after %j is %s', (output, state) => {
  const call = payment({ state: 'output-error', errorText: 'whatever the server says' });
  const told = message(call, confirmation({ state: 'output-available', output }));
  expect(stateOf(call as unknown as ToolPart, cardsOf(told).get('call-1'), false)).toBe(state);
});
