// A small client of POST /api/chat, without a framework: it reads the stream, keeps the messages as the
// AI SDK does, and draws them. Text is always set as text, never as HTML.
'use strict';

const $ = id => document.getElementById(id);
const state = { id: '', messages: [], busy: false, stream: null, drawing: false };

/** Makes an element; strings become text. */
function el(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children.flat().filter(child => child != null && child !== ''));
  return node;
}

// Control, bidi, zero-width, tag and filler characters: what could make a value look like another one.
const HIDDEN = /[^\P{Cc}\n\t]|[\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u115F\u1160\u2800\u3164\uFFA0\uFE00-\uFE0F\u{E0100}-\u{E01EF}]/gu;
const visible = text => String(text).replace(HIDDEN, char =>
  `⟦U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟧`);

// Not crypto.randomUUID: it is missing where the page comes over plain http from another machine.
const newId = kind => `${kind}-${[...crypto.getRandomValues(new Uint32Array(4))].map(n => n.toString(16).padStart(8, '0')).join('')}`;

// Talking to the server.

/** Calls the API; what the server says is wrong becomes the error's text. */
async function api(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error('The server does not answer. Check that it runs, then try again.');
  }
  if (response.ok) return response;
  const told = (await response.json().catch(() => ({}))).error ?? {};
  const error = new Error(told.message ?? `The server answered ${response.status}.`);
  throw Object.assign(error, { status: response.status, code: told.code, id: told.id });
}

const post = (path, body, signal) => api(path, {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal,
});
const chatPath = (rest = '') => `api/chat/${encodeURIComponent(state.id)}${rest}`;

/** Yields the chunks of a stream; throws if it breaks off before its end. */
async function* chunksOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  while (true) {
    const { value, done } = await reader.read().catch(() => ({ done: true }));
    if (done) throw new Error('The connection broke. The reply goes on at the server; reconnect to see it.');
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line === 'data: [DONE]') return;
      if (line.startsWith('data: ')) yield JSON.parse(line.slice(6));
    }
  }
}

/** Asks for a reply and shows it as it comes. `again`: it tells its message from the beginning. */
async function follow(ask, { again = false } = {}) {
  const stream = new AbortController();
  state.stream?.abort();
  state.stream = stream;
  setBusy(true);
  notice('');
  let message = null;
  try {
    const response = await ask(stream.signal);
    if (response.status !== 204) {
      for await (const chunk of chunksOf(response)) {
        // A continuation that is told from the beginning has a second start, of the same message.
        if (chunk.type === 'start') message ??= messageOf(chunk.messageId, again);
        else if (message) apply(message, chunk);
        draw();
      }
    }
    return true;
  } catch (error) {
    if (stream.signal.aborted) return false; // another chat was opened, or another reply asked for
    const broken = error.status === undefined || error.code === 'chat_busy';
    notice(error.message + (error.id ? ` (${error.id})` : ''), broken && state.id ? ['Reconnect', resume] : null);
    return false;
  } finally {
    if (state.stream === stream) {
      state.stream = null;
      setBusy(false);
      draw();
      listChats();
      if (message) runBrowserTools(message);
    }
  }
}

const resume = () => follow(signal => api(chatPath('/stream'), { signal }), { again: true });

async function say(text) {
  if (!location.hash) history.replaceState(null, '', `#${state.id}`);
  const message = { id: newId('user'), role: 'user', parts: [{ type: 'text', text }] };
  state.messages.push(message);
  draw();
  $('scroll').scrollTop = $('scroll').scrollHeight;
  const sent = await follow(signal => post('api/chat', { id: state.id, messages: [message], trigger: 'submit-message' }, signal));
  if (!sent && state.messages.at(-1) === message) { // refused: nothing was said
    state.messages.pop();
    $('text').value ||= text;
    draw();
  }
}

/** Sends the answers that a message holds, once none of its calls waits for us. */
function sendAnswers(message) {
  draw();
  if (!state.messages.includes(message)) return; // another chat was opened meanwhile
  if (message.parts.some(part => isAsked(part) || needsBrowser(part))) return;
  follow(signal => post('api/chat', {
    id: state.id, messages: [message], messageId: message.id, trigger: 'submit-message',
  }, signal)).then(done => done || load(state.id));
}

// Messages.

function messageOf(id, again) {
  let message = state.messages.find(known => known.id === id);
  if (!message) state.messages.push(message = { id, role: 'assistant', parts: [] });
  if (again) message.parts = [];
  return message;
}

/** Adds one chunk to a message, by the AI SDK's rules. */
function apply(message, chunk) {
  const { parts } = message;
  const open = kind => parts.findLast(part => part.type === kind && part.chunk === chunk.id);
  const tool = (name = '?') => {
    let part = parts.find(known => known.toolCallId === chunk.toolCallId);
    if (!part) parts.push(part = { type: `tool-${name}`, toolCallId: chunk.toolCallId, state: 'input-streaming' });
    return part;
  };
  switch (chunk.type) {
    case 'start-step': parts.push({ type: 'step-start' }); break;
    case 'text-start': parts.push({ type: 'text', chunk: chunk.id, text: '' }); break;
    case 'reasoning-start': parts.push({ type: 'reasoning', chunk: chunk.id, text: '' }); break;
    case 'text-delta': open('text').text += chunk.delta; break;
    case 'reasoning-delta': open('reasoning').text += chunk.delta; break;
    case 'tool-input-start': tool(chunk.toolName); break;
    case 'tool-input-available': Object.assign(tool(chunk.toolName), { state: 'input-available', input: chunk.input }); break;
    case 'tool-input-error': Object.assign(tool(chunk.toolName), { state: 'output-error', input: chunk.input, errorText: chunk.errorText }); break;
    case 'tool-approval-request': Object.assign(tool(), { state: 'approval-requested', approval: { id: chunk.approvalId } }); break;
    case 'tool-output-available': Object.assign(tool(), { state: 'output-available', output: chunk.output, preliminary: chunk.preliminary }); break;
    case 'tool-output-error': Object.assign(tool(), { state: 'output-error', errorText: chunk.errorText }); break;
    case 'tool-output-denied': Object.assign(tool(), { state: 'output-denied' }); break;
    case 'source-url': case 'source-document': case 'file': parts.push({ ...chunk }); break;
    case 'error': parts.push({ type: 'error', text: chunk.errorText }); break;
    case 'abort': parts.push({ type: 'note', text: 'Stopped.' }); break;
    default: if (chunk.type.startsWith('data-')) setData(parts, chunk);
  }
}

function setData(parts, chunk) {
  const known = chunk.id && parts.find(part => part.type === chunk.type && part.id === chunk.id);
  if (known) known.data = chunk.data; else parts.push({ type: chunk.type, id: chunk.id, data: chunk.data });
}

// Tools that run here.

const BROWSER_TOOLS = {
  get_location: () => new Promise((resolve, reject) => {
    if (!navigator.geolocation) reject(new Error('This browser has no location.'));
    navigator.geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude, accuracy } }) => resolve({ latitude, longitude, accuracy }),
      error => reject(new Error(error.message || 'The browser did not tell the location.')),
      { timeout: 20000 },
    );
  }),
  change_bgm: async ({ track }) => ({ playing: play(String(track)) }),
};
const isAsked = part => part.state === 'approval-requested';
const toolName = part => part.toolName ?? part.type.slice(5);
const needsBrowser = part => part.toolCallId && Object.hasOwn(BROWSER_TOOLS, toolName(part)) &&
  ((part.state === 'input-available' && !part.approval) || (part.state === 'approval-responded' && part.approval.approved));

async function runBrowserTools(message) {
  const waiting = message.parts.filter(part => needsBrowser(part) && !part.running);
  for (const part of waiting) {
    part.running = true;
    try {
      part.output = await BROWSER_TOOLS[toolName(part)](part.input ?? {});
      part.state = 'output-available';
    } catch (error) {
      Object.assign(part, { state: 'output-error', errorText: error.message });
    }
    delete part.running;
  }
  if (waiting.length) sendAnswers(message);
}

let audio = null;
/** Plays a quiet chord that depends on the track's name; returns the name. */
function play(track) {
  silence();
  const pitch = [...track].reduce((sum, char) => sum + char.codePointAt(0), 0) % 12;
  audio = new AudioContext();
  const gain = new GainNode(audio, { gain: 0.03 });
  gain.connect(audio.destination);
  for (const step of [0, 7, 12, 16]) {
    const tone = new OscillatorNode(audio, { type: 'triangle', frequency: 131 * 2 ** ((pitch + step) / 12) });
    tone.connect(gain);
    tone.start();
  }
  $('track').textContent = `♪ ${visible(track)}`;
  $('music').hidden = false;
  return track;
}

function silence() {
  audio?.close();
  audio = null;
  $('music').hidden = true;
}

// Drawing.

/** Draws at most once a frame, and only the parts that changed. */
function draw() {
  if (state.drawing) return;
  state.drawing = true;
  requestAnimationFrame(() => {
    state.drawing = false;
    const scroll = $('scroll');
    const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
    $('welcome').hidden = state.messages.length > 0;
    sync($('log'), [...state.messages.map(messageView), ...(state.busy ? [WAIT] : [])]);
    if (atEnd) scroll.scrollTop = scroll.scrollHeight;
    const card = document.querySelector('.approval:not([data-seen])');
    if (!card || state.busy) return;
    document.querySelectorAll('.approval').forEach(asked => { asked.dataset.seen = ''; });
    card.scrollIntoView({ block: 'nearest' });
    if (!$('text').value) card.querySelector('.deny').focus({ preventScroll: true });
  });
}

/** Makes the children be those of the views, keeping each whose content is the same. */
function sync(parent, views) {
  const old = [...parent.children];
  views.forEach(({ key, content, make, children }, at) => {
    let node = old.find(known => known.dataset.key === key && known.view === content);
    if (!node) {
      node = make();
      node.dataset.key = key;
      node.view = content;
      old.find(known => known.dataset.key === key)?.remove();
    }
    if (children) sync(node, children);
    if (parent.children[at] !== node) parent.insertBefore(node, parent.children[at] ?? null);
  });
  while (parent.children.length > views.length) parent.lastElementChild.remove();
}

const WAIT = { key: 'wait', content: '', make: () => el('div', { className: 'wait', ariaLabel: 'Waiting' }, '● ● ●') };

function messageView(message) {
  const shown = message.parts.map((part, at) => [part, at]).filter(([part]) =>
    part.text || part.toolCallId || ['file', 'source-url', 'source-document'].includes(part.type));
  const views = shown.map(([part, at]) => {
    const card = part.toolCallId && cardOf(message, part)?.data;
    const content = JSON.stringify([part, card]);
    return { key: `${at}`, content, make: () => partView(part, card ?? {}, message) };
  });
  return { key: message.id, content: message.role, make: () => el('article', { className: message.role }), children: views };
}

// By the call's id: a call that a policy decided has no approval of its own on its part.
const cardOf = (message, { toolCallId }) =>
  message.parts.find(other => other.type === 'data-approval' && other.data.toolCallId === toolCallId);

function partView(part, card, message) {
  if (part.toolCallId) return isAsked(part) ? approvalView(part, card, message) : toolView(part, card);
  switch (part.type) {
    case 'text': return el('div', { className: 'text' }, part.text);
    case 'reasoning': return el('details', { className: 'reasoning' }, el('summary', {}, 'Thinking'), part.text);
    case 'error': case 'note': return el('div', { className: part.type }, part.text);
    case 'file': return fileView(part);
    default: return sourceView(part);
  }
}

function fileView({ url, mediaType = '', filename }) {
  const name = visible(filename ?? mediaType);
  if (!url.startsWith('data:')) return el('div', { className: 'source' }, `File: ${name}`);
  if (/^image\/(png|jpeg|gif|webp)$/.test(mediaType)) return el('img', { src: url, alt: name });
  if (mediaType.startsWith('audio/')) return el('audio', { src: url, controls: true });
  return el('a', { className: 'source', href: url, download: filename ?? 'file' }, `File: ${name}`);
}

function sourceView({ url = '', title }) {
  const label = visible(title ?? url);
  if (!/^https?:\/\//.test(url)) return el('div', { className: 'source' }, label);
  return el('a', { className: 'source', href: url, target: '_blank', rel: 'noopener noreferrer nofollow' }, label);
}

const STATES = {
  'input-streaming': 'preparing', 'input-available': 'running', 'output-available': 'done', 'output-error': 'failed',
  'output-denied': 'denied',
};
const stateOf = ({ state: now, approval }) => STATES[now] ?? (approval?.approved ? 'approved' : 'denied');

function toolView(part, card) {
  const failed = part.state === 'output-error' ? part.errorText : null;
  const reason = part.state === 'output-denied' && (card.reason ?? part.approval?.reason);
  return el('details', { className: `tool ${part.state}`, open: part.state === 'output-error' },
    el('summary', {}, el('code', {}, visible(toolName(part))), el('span', { className: 'state' }, stateOf(part)),
      brief(part.input)),
    el('h4', {}, 'Input'), data(part.input),
    part.output === undefined ? '' : [el('h4', {}, 'Output'), data(part.output)],
    failed ? el('p', { className: 'error' }, visible(failed)) : '',
    reason ? el('p', {}, `Reason: ${visible(reason)}`) : '',
    card.editedInput ? [el('h4', {}, `Ran with, changed by ${visible(card.editedBy ?? 'an approver')}`), data(card.editedInput)] : '',
    card.automatic ? el('p', { className: 'small' }, `Decided automatically, by ${visible(card.decidedBy)}`) : '',
    card.approvedBy ? el('p', { className: 'small' }, `Approved by ${names(card.approvedBy, ', then ')}`) : '',
    !card.automatic && !card.approvedBy && card.decidedBy ? el('p', { className: 'small' }, `Decided by ${visible(card.decidedBy)}`) : '',
    card.resolved ? el('p', { className: 'small' }, `Found out by ${visible(card.resolved.by ?? 'the tool')}: it is ${card.status}`) : '');
}

const brief = input => el('span', { className: 'brief' }, visible(Object.values(input ?? {})
  .filter(value => typeof value !== 'object').join(' · ')).slice(0, 80));

function approvalView(part, card, message) {
  const reason = el('input', { type: 'text', maxLength: 500, placeholder: 'Reason (optional)', ariaLabel: 'Reason' });
  const decide = approved => () => {
    if (state.busy) return;
    part.approval = { id: part.approval.id, approved, ...(reason.value && { reason: reason.value }) };
    part.state = 'approval-responded';
    if (needsBrowser(part)) runBrowserTools(message); else sendAnswers(message);
  };
  const name = toolName(part);
  const button = (className, label, approved) => el('button', { type: 'button', className, onclick: decide(approved) }, label);
  return el('section', { className: 'approval', ariaLabel: `Approval for ${name}` },
    el('div', { className: 'approval-head' }, el('h3', {}, visible(card.title || name)),
      card.risk ? el('span', { className: `risk ${/^\w+$/.test(card.risk) ? card.risk : ''}` }, `${visible(card.risk)} risk`) : ''),
    card.hint ? el('p', {}, visible(card.hint)) : '',
    card.step ? stepView(card) : '',
    el('p', { className: 'small' }, 'Tool: ', el('code', {}, visible(name))),
    data(part.input), card.editedInput ? [el('h4', {}, `Changed by ${visible(card.editedBy ?? 'an approver')} to`), data(card.editedInput)] : '',
    reason,
    el('div', { className: 'buttons' }, button('deny', 'Deny', false), button('approve', 'Approve', true),
      card.expiresAt ? el('time', { dateTime: card.expiresAt, className: 'small' }, expiry(card.expiresAt)) : ''));
}

const names = (people, between) => people.map(visible).join(between);

/** Tells which of several approvals is awaited, and whose. */
function stepView({ step, approvedBy }) {
  const who = step.by ? `: ${names(step.by, ' or ')}` : '';
  return el('p', { className: 'step' }, `Step ${step.n} of ${step.of}, ${visible(step.name)}${who}`,
    step.fourEyes ? ' — not whoever asked for it' : '',
    approvedBy ? el('span', { className: 'small' }, ` Approved so far by ${names(approvedBy, ', ')}`) : '');
}

function expiry(moment) {
  const left = (Date.parse(moment) - Date.now()) / 1000;
  if (left <= 0) return 'expired';
  return left < 90 ? `expires in ${Math.ceil(left)} s` : `expires in ${Math.round(left / 60)} min`;
}

/** Shows a value as a table of names and values, with nothing in it hidden. */
function data(value, depth = 0) {
  if (value === null || typeof value !== 'object') return el('span', { className: `value ${typeof value}` }, visible(value ?? 'nothing'));
  const entries = Object.entries(value);
  if (!entries.length) return el('span', { className: 'small' }, 'nothing');
  if (depth > 6) return el('span', { className: 'value' }, visible(JSON.stringify(value)));
  return el('table', {}, el('tbody', {}, entries.map(([name, item]) =>
    el('tr', {}, el('th', { scope: 'row' }, visible(name)), el('td', {}, data(item, depth + 1))))));
}

function notice(text, action) {
  $('notice').hidden = !text;
  $('notice').replaceChildren(text, ...(action ? [el('button', { type: 'button', onclick: action[1] }, action[0])] : []));
}

function setBusy(busy) {
  state.busy = busy;
  document.body.classList.toggle('busy', busy);
  $('send').hidden = busy;
  $('stop').hidden = !busy;
}

// Chats.

async function listChats() {
  const chats = await api('api/chats').then(response => response.json()).then(told => told.chats, () => null);
  if (!chats) return;
  $('chats').replaceChildren(...chats.map(({ id, title }) => el('li', { className: id === state.id ? 'here' : '' },
    el('a', { href: `#${encodeURIComponent(id)}`, title: visible(title) }, visible(title) || 'Untitled'),
    el('button', { type: 'button', ariaLabel: `Delete ${title}`, onclick: () => remove(id, title) }, '×'))));
  $('title').textContent = visible(chats.find(({ id }) => id === state.id)?.title || 'New chat');
}

async function remove(id, title) {
  if (!confirm(`Delete “${title}”?`)) return;
  await api(`api/chats/${encodeURIComponent(id)}`, { method: 'DELETE' }).catch(error => notice(error.message));
  if (id === state.id) location.hash = ''; else listChats();
}

/** Shows a chat as the server has it, and follows its reply if one is running. */
async function load(id) {
  state.stream?.abort();
  Object.assign(state, { id, messages: [], stream: null });
  notice('');
  setBusy(false);
  try {
    const chat = await api(`api/chats/${encodeURIComponent(id)}`).then(response => response.json());
    if (state.id !== id) return;
    state.messages = chat.messages;
    draw();
    const last = state.messages.at(-1);
    // While something waits for us, nothing runs that could be followed.
    if (!last?.parts.some(part => isAsked(part) || needsBrowser(part))) await resume();
    else if (!last.parts.some(isAsked)) await runBrowserTools(last);
  } catch (error) {
    if (state.id === id && error.status !== 404) notice(error.message, ['Try again', () => load(id)]);
    draw();
  }
  listChats();
}

/** Shows the chat that the address names, or a new one. */
function route() {
  let id = '';
  try { id = decodeURIComponent(location.hash.slice(1)); } catch { /* not one of our addresses */ }
  menu(false);
  if (id) { if (id !== state.id) load(id); return; }
  state.stream?.abort();
  Object.assign(state, { id: newId('chat'), messages: [], stream: null });
  notice('');
  setBusy(false);
  draw();
  listChats();
  $('text').focus();
}

function menu(shown) {
  document.body.classList.toggle('menu', shown);
  $('menu').setAttribute('aria-expanded', shown);
  $('veil').hidden = !shown;
}

/** Sees what was decided elsewhere, or expired, while we show it as waiting. */
async function watch() {
  document.querySelectorAll('.approval time').forEach(node => { node.textContent = expiry(node.dateTime); });
  const message = state.messages.findLast(({ parts }) => parts.some(isAsked));
  if (!message || state.busy || document.hidden) return;
  const part = message.parts.find(isAsked);
  const now = await api(`api/approvals/${encodeURIComponent(part.approval.id)}`).then(response => response.json()).catch(() => null);
  if (now?.status === 'pending') {
    const card = cardOf(message, part);
    if (card && card.data.step?.n !== now.step?.n) { card.data = now; draw(); } // a step was approved elsewhere
  }
  if (!now || now.status === 'pending' || state.busy || !isAsked(part) || !state.messages.includes(message)) return;
  part.approval.approved = !['denied', 'expired', 'cancelled'].includes(now.status);
  part.state = 'approval-responded';
  draw();
  if (!message.parts.some(isAsked)) await (now.status === 'approved' && needsBrowser(part) ? runBrowserTools(message) : resume());
}

$('composer').addEventListener('submit', event => {
  event.preventDefault();
  const text = $('text').value.trim();
  if (!text || state.busy) return;
  $('text').value = '';
  say(text);
});
$('text').addEventListener('keydown', event => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return; // composing: Japanese input
  event.preventDefault();
  $('composer').requestSubmit();
});
$('stop').addEventListener('click', () => post(chatPath('/stop'), {}).catch(error => notice(error.message)));
$('new').addEventListener('click', () => { if (location.hash) location.hash = ''; else route(); });
$('menu').addEventListener('click', () => menu(!document.body.classList.contains('menu')));
$('veil').addEventListener('click', () => menu(false));
$('silence').addEventListener('click', silence);
$('welcome').addEventListener('click', ({ target }) => { if (target.matches('button') && !state.busy) say(target.textContent); });
addEventListener('hashchange', route);
setInterval(watch, 3000);
route();
