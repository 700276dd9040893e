// Checks messages with `validateUIMessages` and `convertToModelMessages` of every version. See README.md.

import { createInterface } from 'node:readline';

import { read } from './reading.mjs';
import { load, VERSIONS } from './sdk.mjs';

const clients = await Promise.all(VERSIONS.map(async version => [version, await load(version)]));
const CHECKS = {
  validateUIMessages: (sdk, messages) => sdk.validateUIMessages({ messages }),
  convertToModelMessages: (sdk, messages) => sdk.convertToModelMessages(messages),
};
const USER = { id: 'user', role: 'user', parts: [{ type: 'text', text: 'go' }] };

/**
 * While a browser runs a call that was approved, its part is `input-available` and has its approval: so
 * `tool-input-available` leaves it, in every version, and no version takes that for valid. See docs/reference/chunks.md.
 */
const withoutApprovalsOfRunning = messages =>
  messages.map(message => ({ ...message, parts: message.parts.map(withoutApprovalWhileItRuns) }));
const withoutApprovalWhileItRuns = ({ approval, ...part }) =>
  approval === undefined || (part.state === 'input-available' && approval.approved === true)
    ? part
    : { ...part, approval };

async function checked(sdk, messages) {
  const problems = [];
  for (const [name, check] of Object.entries(CHECKS)) {
    const refusal = await refusalOf(check, sdk, messages);
    if (refusal === null) continue;
    // What a schema says of a union that nothing fits is long; the parts that it refuses alone say more.
    const parts = messages.flatMap(message => message.parts.map(part => ({ ...message, parts: [part] })));
    const refused = [];
    for (const message of parts) {
      if (await refusalOf(check, sdk, [message])) refused.push(JSON.stringify(message.parts[0]));
    }
    problems.push(`${name} refuses ${refused.join(', ') || refusal}`);
  }
  return problems;
}

async function refusalOf(check, sdk, messages) {
  try {
    await check(sdk, structuredClone(messages));
    return null;
  } catch (error) {
    return error.message;
  }
}

/** The messages that a page of one version shows, and what was wrong on the way there. */
async function shown(client, { messages, chunks }) {
  if (messages) return { messages, problems: [] };
  const { message, error, errorKind, refused } = await read(client, { chunks });
  const problems = refused.map(chunk => `chunk ${chunk.index}: ${chunk.error}`);
  if (errorKind !== null && errorKind !== 'stream') problems.push(`${errorKind}: ${error}`);
  return { messages: message ? [USER, message] : [], problems };
}

async function answer({ n, only, ...input }) {
  const problems = [];
  for (const [version, client] of clients) {
    if (only === 'ai7 newest' ? version !== 'ai7' : only && !version.startsWith(only)) continue;
    const { messages, problems: met } = await shown(client, input);
    const found =
      messages.length > 0 ? await checked(client.sdk, withoutApprovalsOfRunning(messages)) : [];
    problems.push(...[...met, ...found].map(text => `${version} ${text}`));
  }
  return { n, problems };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
}
