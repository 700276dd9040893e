// What happens to a chat away from this page: each time the chat is loaded again, and nothing else is done.

import type { Chat } from '@ai-sdk/react';
import type { UIMessage } from 'ai';
import { useEffect, useRef } from 'react';

import { currentPrefs } from '../app/prefs.ts';
import * as api from '../server/api.ts';
import { useSeen } from '../server/watch.ts';
import { asksOf } from './asked.ts';
import { withWords } from './words.ts';

interface Options {
  chat: Chat<UIMessage>;
  messages: UIMessage[];
  isBusy: boolean;
  isLoading: boolean;
  isLost: boolean;
  /** The newest chat that the server says something happened in, and how often it did. */
  active: { chatId: string; times: number };
  refresh: () => Promise<void>;
}

export function useElsewhere(options: Options): void {
  useReturn(options);
  useSettled(options);
  useSaid(options);
  useHints(options);
}

const isIdle = ({ status }: Chat<UIMessage>): boolean => status === 'ready' || status === 'error';

// In milliseconds.
const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;

/** The server is back: everything that happened meanwhile is there. */
function useReturn({ isLost, isBusy, refresh }: Options): void {
  const { isReachable, looks } = useSeen();
  // The server may answer and the chat be lost each time: a proxy may let no WebSocket through.
  const tried = useRef({ at: 0, wait: 0 });
  useEffect(() => {
    const { at, wait } = tried.current;
    const since = Date.now() - at;
    if (!isLost || !isReachable || since < wait) return;
    const longer = Math.min(2 * wait || FIRST_WAIT, LONGEST_WAIT);
    tried.current = { at: Date.now(), wait: since > 2 * LONGEST_WAIT ? FIRST_WAIT : longer };
    void refresh();
  }, [isLost, looks]);
  const wasReachable = useRef(true);
  useEffect(() => {
    const isBack = isReachable && !wasReachable.current;
    wasReachable.current = isReachable;
    if (isBack && !isLost && !isBusy) void refresh();
  }, [isReachable]);
}

/** What waits here was decided somewhere else, or expired. */
function useSettled({ messages, isBusy, isLoading, refresh }: Options): void {
  const { pending, looks } = useSeen();
  // The approvals that were asked about: each is looked at once.
  const known = useRef(new Set<string>());
  useEffect(() => {
    if (isBusy || isLoading || pending === undefined) return;
    const waiting = new Set(pending.map(({ id }) => id));
    const gone = messages
      .flatMap(asksOf)
      .map(({ approvalId }) => approvalId)
      .find(id => !waiting.has(id) && !known.current.has(id));
    if (gone === undefined) return;
    known.current.add(gone);
    api.approval(gone).then(
      ({ status }) => {
        // The look was older than the question.
        if (status === 'pending') known.current.delete(gone);
        else void refresh();
      },
      () => known.current.delete(gone),
    );
  }, [looks, isBusy, isLoading]);
}

/** Another tab said something, or a voice did. */
function useSaid({ chat, messages, isBusy, isLoading, refresh }: Options): void {
  const { chats } = useSeen();
  const updatedAt = chats?.find(({ id }) => id === chat.id)?.updatedAt;
  const last = useRef(updatedAt);
  // Over envelopes a turn stays open while it waits, perhaps for long.
  const isInTheMiddle = isBusy && messages.flatMap(asksOf).length === 0;
  useEffect(() => {
    if (isInTheMiddle || isLoading || updatedAt === undefined || last.current === updatedAt) return;
    // Also at the first sight of a chat: what was spoken may be over by then.
    last.current = updatedAt;
    // It may be this page's own turn that was stored.
    api.chat(chat.id, currentPrefs().profile).then(
      found => {
        if (found === null || idsOf(found.messages) === idsOf(chat.messages)) return;
        if (isIdle(chat)) void refresh();
        else chat.messages = withWords(chat.messages, found.messages);
      },
      () => {},
    );
  }, [updatedAt, isInTheMiddle, isLoading]);
}

const idsOf = (messages: UIMessage[]): string => messages.map(({ id }) => id).join(' ');

/** The server says over a socket that a turn began. */
function useHints({ chat, active, refresh }: Options): void {
  useEffect(() => {
    if (active.chatId === chat.id && active.times > 0 && isIdle(chat)) void refresh();
  }, [active]);
}
