// One chat of the page: `useChat` with what a person needs beside it. The server has the truth, so whatever
// may have happened elsewhere is answered by loading the chat again, and following the reply that runs.

import { Chat, useChat } from '@ai-sdk/react';
import { BrowserTools, handleConfirmation, sendWhenAnswered, type AnswerTransport, type BrowserTool } from 'adk-stream-client';
import type { FileUIPart, UIMessage } from 'ai';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';

import { isInAddress, keepInAddress, newId } from '../app/address.ts';
import { currentPrefs, usePrefs } from '../app/prefs.ts';
import { recorder } from '../inspector/tape.ts';
import * as api from '../server/api.ts';
import { lookNow, noteChat, useSeen } from '../server/watch.ts';
import { useTexts } from '../texts/index.ts';
import { asksOf, isAnswering } from './asked.ts';
import { useElsewhere } from './elsewhere.ts';
import { isLost, told } from './faults.ts';
import type { Actions } from './MessageView.tsx';
import type { NoticeContent } from './Notice.tsx';
import type { PageTransport } from './route.ts';

const DRAWN_EVERY = 40;

/** What was said and not answered yet: it goes back to the composer if the server never got it. */
interface Said {
  id: string;
  text: string;
  files: FileUIPart[];
}

export interface Conversation {
  messages: UIMessage[];
  isBusy: boolean;
  isLoading: boolean;
  isStopping: boolean;
  notice: NoticeContent | null;
  /** Whether the notice is that of a lost connection, which goes by itself. */
  isLost: boolean;
  setNotice: (notice: NoticeContent | null) => void;
  actions: Actions;
  say: (text: string, files: FileUIPart[]) => void;
  stop: () => void;
  /** Loads the chat again and follows what runs in it. */
  refresh: () => Promise<void>;
  /** Asks for what runs: a socket that asked for a chat is told when a turn begins in it. */
  follow: () => void;
  /** What the person is saying aloud, as it is understood. */
  caption: string;
}

interface Options {
  chatId: string;
  transport: PageTransport;
  tools: Record<string, BrowserTool>;
  /** Gives back what was not sent. */
  onUnsent: (text: string, files: FileUIPart[]) => void;
  /** The newest chat that the server says something happened in, and how often it did. */
  active: { chatId: string; times: number };
}

export function useConversation({ chatId, transport, tools, onUnsent, active }: Options): Conversation {
  const t = useTexts();
  const { mode, profile } = usePrefs();
  const seen = useSeen();
  const [isLoading, setLoading] = useState(true);
  const [isStopping, setStopping] = useState(false);
  const [isLostNow, setLost] = useState(false);
  const [notice, setNotice] = useState<NoticeContent | null>(null);
  const [caption, setCaption] = useState('');
  const said = useRef<Said | null>(null);
  // Whether a decision was on its way when the connection was lost.
  const wasDeciding = useRef(false);
  // What `onError` and `onFinish` call; set below, as they need the chat.
  const onError = useRef<(error: Error) => void>(() => {});
  const answering = useRef<AnswerTransport>({});
  const browser = useMemo(
    () => new BrowserTools({ tools, transport: () => answering.current }),
    [chatId, tools],
  );

  const isAnswered = useMemo(
    () => sendWhenAnswered({ browserTools: browser }),
    [browser, chatId, transport],
  );
  const chat = useMemo(
    () =>
      new Chat<UIMessage>({
        id: chatId,
        transport,
        generateId: () => newId('message'),
        sendAutomaticallyWhen: isAnswered,
        onError: error => onError.current(error),
        onData: part => {
          if (part.type !== 'data-adk-transcription') return;
          const { text } = part.data as { text: string };
          setCaption(text);
        },
        // Not only when `status` was seen to change: a short reply may be over before it is drawn.
        onFinish: () => setCaption(''),
      }),
    [isAnswered, chatId, transport],
  );
  const { messages, status } = useChat({ chat, throttle: DRAWN_EVERY });
  const isBusy = status === 'submitted' || status === 'streaming';

  // The socket is asked first; it knows whether the call's reply is open on it.
  answering.current = {
    chatId,
    websocket: transport.envelope,
    addToolOutput: output => chat.addToolOutput(output as never),
    addToolApprovalResponse: response => chat.addToolApprovalResponse(response),
  };
  useEffect(() => {
    if (!isLoading) browser.look(messages, status);
  }, [browser, messages, status, isLoading]);

  // Only the newest loading counts: an older one may come back later.
  const loading = useRef(0);
  // Resolved when the messages are those of the server: what is done before that would be lost with them.
  const loaded = useRef(Promise.resolve());
  // Whether to load once what is being sent has arrived.
  const isDue = useRef(false);
  const refresh = useCallback(async (): Promise<void> => {
    // To stop what is on its way to the server might lose it.
    isDue.current = chat.status === 'submitted';
    if (isDue.current) return;
    const mine = ++loading.current;
    let done = () => {};
    loaded.current = new Promise(resolve => {
      done = resolve;
    });
    await chat.stop();
    try {
      // A chat that nothing was said in is not there: the server need not be asked.
      const found = isInAddress() ? await api.chat(chatId, currentPrefs().profile) : null;
      if (found !== null) noteChat(chatId, found);
      if (mine !== loading.current) return;
      setLost(false);
      setLoading(false);
      // Something was said meanwhile, which what was found does not have.
      if (chat.status === 'submitted' || chat.status === 'streaming') return await refresh();
      chat.clearError();
      const known = found?.messages ?? [];
      const unsent = said.current;
      said.current = null;
      if (unsent !== null && !known.some(({ id }) => id === unsent.id)) {
        onUnsent(unsent.text, unsent.files);
        setNotice({ kind: 'info', text: t.notSent });
      }
      if (wasDeciding.current && asksOf(known.at(-1)).length > 0) {
        setNotice({ kind: 'info', text: t.notDecided });
      }
      wasDeciding.current = false;
      chat.messages = known;
      // What waits still, though it was answered here, may be answered in the same way again.
      isAnswered({ messages: known });
      done();
      if (isInAddress() && follows(known, transport.isEnvelope)) await chat.resumeStream();
    } catch (error) {
      if (mine !== loading.current) return;
      setLoading(false);
      if (isLost(error)) {
        setLost(true);
        void lookNow();
        return;
      }
      const { text } = told(error);
      setNotice({
        kind: 'fault',
        text: `${t.loadFailed} ${text}`,
        action: { label: t.tryAgain, run: () => void refresh() },
      });
    } finally {
      done();
      void lookNow();
    }
  }, [chat, chatId, onUnsent, t, transport]);

  const whenLoaded = useCallback(async () => {
    let waited;
    do {
      waited = loaded.current;
      await waited;
    } while (waited !== loaded.current);
  }, []);

  useEffect(() => {
    if (isDue.current) void refresh();
  }, [status]);

  // At first, and when the profile shows the same history otherwise, or the route is another. Before anybody
  // can click on what is shown of the old one.
  useLayoutEffect(() => {
    void refresh();
    return () => {
      loading.current += 1;
      // A reply that nobody looks at would hold a connection, of which a browser grants six.
      if (chat.status !== 'submitted') void chat.stop();
    };
    // `refresh` changes with the language, which changes no chat.
  }, [chat, mode, profile]);

  onError.current = error => {
    const last = chat.messages.at(-1);
    if (isLost(error)) {
      if (last?.role === 'user' && said.current === null) said.current = saidIn(last);
      if (last !== undefined && isAnswering(last)) wasDeciding.current = true;
      setLost(true);
      void lookNow();
      return;
    }
    const { text, code, errorId } = told(error);
    const shown = errorId === undefined ? text : `${text} ${t.errorId(errorId)}`;
    if (last?.role === 'user') {
      // Refused: nothing was said.
      const { text: words, files } = saidIn(last);
      said.current = null;
      chat.messages = chat.messages.slice(0, -1);
      onUnsent(words, files);
    }
    const show = { label: t.showReply, run: () => void refresh() };
    const again = { label: t.regenerate, run: () => void chat.regenerate() };
    const isAnswered = last?.role === 'assistant' && asksOf(last).length === 0;
    setNotice({
      kind: 'fault',
      text: shown,
      ...(code === 'chat_busy' ? { action: show } : isAnswered && code === undefined && { action: again }),
    });
    // What was taken away for an edit, or shown as decided, is not so at the server.
    if (code !== undefined || last?.role === 'user' || (last !== undefined && isAnswering(last))) void refresh();
  };

  useElsewhere({ chat, messages, isBusy, isLoading, isLost: isLostNow, active, refresh });

  useEffect(() => {
    if (isBusy) return;
    setStopping(false);
    // What was lost on its way is still to be given back.
    if (status !== 'error') said.current = null;
    setCaption('');
    void lookNow();
  }, [isBusy]);

  const actions = useMemo<Actions>(
    () => ({
      decide: async (asked, verdict) => {
        setNotice(null);
        await whenLoaded();
        const isPlain =
          verdict.input === undefined && verdict.argumentsHash === undefined && !verdict.remember;
        // Found anew: another profile has another part for the same question.
        const here = asksOf(chat.messages.at(-1)).find(({ approvalId }) => approvalId === asked.approvalId);
        if (isPlain && here !== undefined) {
          await handleConfirmation(here.part, verdict.approved, answering.current, verdict.reason);
          return;
        }
        // Changed arguments, which of them are meant, and standing approvals have no place in a message.
        recorder.in({ chat: chatId }, { type: 'decision', data: { id: asked.approvalId, ...verdict } });
        await api.decide(asked.approvalId, verdict, newId('decision'));
        await refresh();
      },
      answer: ({ toolCallId }, text) => {
        void chat.addToolOutput({ tool: 'adk_request_input', toolCallId, output: text } as never);
      },
      edit: (messageId, text) => {
        setNotice(null);
        const edited = chat.messages.find(({ id }) => id === messageId);
        void chat.sendMessage({ text, files: edited === undefined ? [] : saidIn(edited).files, messageId });
      },
      regenerate: messageId => {
        setNotice(null);
        void chat.regenerate({ messageId });
      },
    }),
    [chat, chatId, refresh, whenLoaded],
  );

  const say = (text: string, files: FileUIPart[]) => {
    keepInAddress(chatId);
    setNotice(null);
    void whenLoaded().then(() => chat.sendMessage({ text, files }));
  };
  const stop = () => {
    setStopping(true);
    recorder.in({ chat: chatId }, { type: 'stop' });
    api.stop(chatId, profile).then(
      () => (isBusy ? undefined : void refresh()),
      (error: unknown) => {
        setStopping(false);
        setNotice({ kind: 'fault', text: told(error).text });
      },
    );
  };

  const lost: NoticeContent = {
    kind: 'fault',
    text: seen.isReachable ? t.lost : t.unreachable,
    action: { label: t.tryNow, run: () => void refresh() },
  };
  return {
    messages,
    isBusy,
    isLoading,
    isStopping,
    notice: isLostNow || !seen.isReachable ? lost : notice,
    isLost: isLostNow || !seen.isReachable,
    setNotice,
    actions,
    say,
    stop,
    refresh,
    follow: () => void chat.resumeStream(),
    caption,
  };
}

function saidIn({ id, parts }: UIMessage): Said {
  const text = parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n\n');
  return { id, text, files: parts.filter(part => part.type === 'file') };
}

/** Says whether a reply may be running: not while its message waits for us, nor after it broke. */
function follows(messages: UIMessage[], isEnvelope: boolean): boolean {
  const last = messages.at(-1);
  if (last?.parts.some(({ type }) => type === 'data-adk-error') === true) return false;
  // An envelope's socket tells a reply that waits, too, and takes the answer.
  return isEnvelope || asksOf(last).length === 0;
}
