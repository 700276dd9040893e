// `streamText` of ai 7 with `experimental_toolApprovalSecret`, behind HTTP as its documentation shows:
// the messages that the client sends are the history. Run as `node --input-type=module -e` in the
// folder of the packages, with the file of charges as its argument; prints its URL.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import {
  convertToModelMessages,
  isStepCount,
  simulateReadableStream,
  streamText,
  tool,
} from 'ai7';
import { MockLanguageModelV4 } from 'ai7/test';
import { z } from 'zod';

const charges = process.argv.at(-1);
const usage = {
  inputTokens: { total: 1, noCache: 1 },
  outputTokens: { total: 1, text: 1 },
};
const finish = reason => ({
  type: 'finish',
  finishReason: { unified: reason, raw: reason },
  usage,
});
const CALL = [
  { type: 'tool-call', toolCallId: 'call-1', toolName: 'pay', input: '{"amount":5}' },
  finish('tool-calls'),
];
const TEXT = [
  { type: 'text-start', id: '1' },
  { type: 'text-delta', id: '1', delta: 'Result told.' },
  { type: 'text-end', id: '1' },
  finish('stop'),
];

const model = new MockLanguageModelV4({
  doStream: async ({ prompt }) => ({
    stream: simulateReadableStream({ chunks: prompt.at(-1).role === 'tool' ? TEXT : CALL }),
  }),
});

const tools = {
  pay: tool({
    description: 'Charge the card.',
    inputSchema: z.object({ amount: z.number() }),
    needsApproval: true,
    execute: async ({ amount }) => {
      appendFileSync(charges, `${amount}\n`);
      return { paid: amount };
    },
  }),
};

const server = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  const { messages } = JSON.parse(body);
  const result = streamText({
    model,
    tools,
    messages: await convertToModelMessages(messages, { tools }),
    stopWhen: isStepCount(5),
    experimental_toolApprovalSecret: 'only the server knows this',
  });
  result.pipeUIMessageStreamToResponse(response, { originalMessages: messages });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
