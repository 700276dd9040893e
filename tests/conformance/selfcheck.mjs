// Checks read.mjs and chat.mjs against what the real `streamText` sends: `npm run selfcheck`.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

import { VERSIONS } from './sdk.mjs';

const here = new URL('.', import.meta.url);

/** The recorded streams by heading. A heading with an arrow continues the stream above it. */
const traces = {};
for (const line of readFileSync(new URL('streamtext-traces.txt', here), 'utf8').split('\n')) {
  if (line.startsWith('## ')) traces[line.slice('## '.length)] = [];
  else if (line.startsWith('{')) Object.values(traces).at(-1).push(JSON.parse(line));
}

function run(script, ...args) {
  const child = spawn(process.execPath, [script, ...args], {
    cwd: here,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    write: value => child.stdin.write(`${JSON.stringify(value)}\n`),
    read: async () => JSON.parse((await lines.next()).value),
    end: async () => {
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

async function readAll(inputs) {
  const reader = run('read.mjs');
  inputs.forEach(reader.write);
  const readings = {};
  for (let left = inputs.length * VERSIONS.length; left > 0; left -= 1) {
    const reading = await reader.read();
    readings[`${reading.name} @ ${reading.version}`] = reading;
  }
  await reader.end();
  return readings;
}

const isContinuation = name => name.startsWith('->');
const isForEveryVersion = name => !name.startsWith('v7');

async function everyTraceIsRead() {
  const started = performance.now();
  const first = await readAll(
    Object.entries(traces)
      .filter(([name]) => !isContinuation(name))
      .map(([name, chunks]) => ({ name, chunks })),
  );

  const continued = [];
  let asked;
  for (const [name, chunks] of Object.entries(traces)) {
    if (chunks.some(({ type }) => type === 'tool-approval-request') && !isContinuation(name)) {
      if (isForEveryVersion(name)) asked = first[`${name} @ ai6`].message;
    } else if (isContinuation(name)) {
      // The forged answers stand last in the file, and belong to no message in particular.
      const message = structuredClone(asked);
      for (const part of message.parts) {
        if (part.state !== 'approval-requested') continue;
        part.state = 'approval-responded';
        part.approval.approved = true;
      }
      continued.push({ name, chunks, message });
    }
  }
  const readings = { ...first, ...(await readAll(continued)) };

  for (const [key, reading] of Object.entries(readings)) {
    if (!isForEveryVersion(reading.name) && reading.version !== 'ai7') continue;
    const error = traces[reading.name].find(({ type }) => type === 'error');
    assert.deepEqual(reading.refused, [], key);
    assert.equal(reading.error, error?.errorText ?? null, key);
    assert.equal(reading.errorKind, error ? 'stream' : null, key);
    assert.equal(reading.replies, 1, key);
  }
  assert.equal(readings['v7 automatic denial @ ai6'].errorKind, 'validation');
  assert.equal(readings['-> denied @ ai6strict'].message.parts[1].state, 'output-denied');
  const seconds = ((performance.now() - started) / 1000).toFixed(2);
  console.log(`read: ${Object.keys(readings).length} readings in ${seconds} s`);
}

const HOLD = { type: 'hold' }; // as the last chunk: the server keeps the stream open

/** Answers every POST with the next of these streams, and a resume with nothing to resume. */
async function serve(streams) {
  let left;
  const clientLeft = new Promise(resolve => {
    left = resolve;
  });
  const server = createServer((request, response) => {
    if (request.method === 'GET') return response.writeHead(204).end();
    const chunks = streams.shift();
    if (!chunks) return response.writeHead(500).end('no stream left');
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const chunk of chunks) {
      if (chunk === HOLD) return response.once('close', left);
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    }
    response.end('data: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    api: `http://127.0.0.1:${server.address().port}/api/chat`,
    clientLeft,
    close: () => server.close() && server.closeAllConnections(),
  };
}

async function withChat(sdk, streams, story, ...args) {
  const server = await serve(streams);
  const chat = run('chat.mjs', '--sdk', sdk, '--api', server.api, '--chat', 'chat-1', ...args);
  try {
    await story(async (...commands) => {
      commands.forEach(chat.write);
      let answer;
      for (const _ of commands) answer = await chat.read();
      return answer;
    }, server);
  } finally {
    await chat.end();
    server.close();
  }
}

const request = 'approval request';
const approvalId = traces[request].find(({ approvalId: id }) => id).approvalId;
const approve = { do: 'approve', id: approvalId, approved: true };
const states = ({ messages }) => messages.at(-1).parts.map(part => part.state ?? part.type);

const STORIES = {
  'approved, with the double click ignored': sdk =>
    withChat(sdk, [traces[request], traces['-> approved']], async tell => {
      const asked = await tell({ do: 'send', text: 'pay 5' });
      assert.deepEqual(states(asked), ['step-start', 'approval-requested']);
      assert.deepEqual([asked.ok, asked.status, asked.requests], [true, 'ready', 1]);
      assert.deepEqual(asked.toolCalls.map(({ toolName }) => toolName), ['pay']);
      assert.deepEqual(asked.chunks, [traces[request]]);

      await tell({ ...approve, wait: false }, { ...approve, approved: false, wait: false });
      const paid = await tell({ do: 'wait', for: 'settled' });
      assert.deepEqual(states(paid), ['step-start', 'output-available', 'step-start', 'done']);
      assert.deepEqual([paid.ok, paid.status, paid.requests], [true, 'ready', 2]);
      assert.deepEqual(paid.messages.map(({ role }) => role), ['user', 'assistant']);
      assert.equal(paid.bodies[1].messageId, 'MSG');
      assert.equal(paid.bodies[1].messages[1].parts[1].approval.approved, true);
      assert.deepEqual(paid.finishes.map(({ finishReason }) => finishReason), ['tool-calls', 'stop']);
    }),

  'denied after a reload': sdk =>
    withChat(
      sdk,
      [traces[request], traces['-> denied']],
      async tell => {
        const { messages } = await tell({ do: 'send', text: 'pay 5' });
        const reloaded = await tell({ do: 'set', messages });
        assert.deepEqual(states(reloaded), ['step-start', 'approval-requested']);
        assert.deepEqual(reloaded.resumes.map(({ status }) => status), [204, 204]);
        const denied = await tell({ ...approve, approved: false, reason: 'too much' });
        assert.deepEqual(states(denied), ['step-start', 'output-denied', 'step-start', 'done']);
        assert.equal(denied.bodies[1].messages[1].parts[1].approval.reason, 'too much');
        assert.deepEqual([denied.requests, denied.chatId], [2, 'chat-1']);
      },
      '--resume',
    ),

  'a browser tool gets its output': sdk =>
    withChat(
      sdk,
      [traces['client tool'], traces['text']],
      async tell => {
        await tell({ do: 'send', text: 'go' });
        const done = await tell({ do: 'output', tool: 'client', toolCallId: 'c1', output: 1 });
        assert.equal(done.requests, 2);
        assert.equal(done.messages.length, 2);
      },
      '--auto',
      'tools',
    ),

  'a forgotten denial is sent for ever': sdk =>
    withChat(sdk, [traces[request], ...Array(20).fill([])], async tell => {
      await tell({ do: 'send', text: 'pay 5' });
      const endless = await tell({ ...approve, approved: false });
      assert.deepEqual([endless.ok, endless.error], [false, 'endless resubmission']);
      assert.equal(endless.requests, 12);
    }),

  'stopping closes the connection': sdk =>
    withChat(sdk, [[...traces['abort mid stream'].slice(0, 4), HOLD]], async (tell, server) => {
      const sent = await tell({ do: 'send', text: 'go', wait: false });
      assert.deepEqual([sent.status, sent.requests], ['submitted', 1]);
      await tell({ do: 'wait', for: 'streaming' });
      const spoken = await tell({ do: 'wait', for: 'text', value: 'a' });
      assert.deepEqual([spoken.ok, spoken.status], [true, 'streaming']);
      const late = await tell({ do: 'wait', for: 'settled', timeout: 0.05 });
      assert.match(late.error, /^timeout after 0.05 s/);
      const stopped = await tell({ do: 'stop' });
      assert.deepEqual([stopped.ok, stopped.status], [true, 'ready']);
      assert.equal(stopped.finishes[0].isAbort, true);
      await server.clientLeft;
    }),

  'an answer to an open stream waits for its end': sdk =>
    withChat(sdk, [[...traces[request].slice(0, -2), HOLD]], async tell => {
      await tell({ do: 'send', text: 'pay 5', wait: false });
      await tell({ do: 'wait', for: 'part', state: 'approval-requested' });
      const answered = await tell({ ...approve, wait: false });
      assert.deepEqual(states(answered), ['step-start', 'approval-responded']);
      assert.deepEqual([answered.status, answered.requests], ['streaming', 1]);
    }),

  'errors and refusals are told apart': sdk =>
    withChat(sdk, [traces['model error'], [{ type: 'nonsense' }]], async tell => {
      const failed = await tell({ do: 'send', text: 'go' });
      assert.deepEqual([failed.ok, failed.status, failed.errorKind], [true, 'error', 'stream']);
      assert.equal(failed.error, 'kaput');
      const refused = await tell({ do: 'submit' });
      assert.deepEqual([refused.status, refused.errorKind], ['error', 'validation']);
      const http = await tell({ do: 'regenerate' });
      assert.deepEqual([http.error, http.errorKind], ['no stream left', 'http']);
      const unknown = await tell({ do: 'edit', messageId: 'nobody', text: 'x', wait: false });
      assert.equal(unknown.ok, false);
      const never = await tell({ do: 'wait', for: 'text', value: 'never said' });
      assert.match(never.error, /settled \(error\) before/);
    }),
};

await everyTraceIsRead();
for (const [name, tell] of Object.entries(STORIES)) {
  await Promise.all(VERSIONS.map(tell));
  console.log(`chat: ${name}`);
}
