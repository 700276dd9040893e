import type { UIMessage } from 'ai';
import { useEffect, useLayoutEffect, useRef, type ReactNode } from 'react';

import type { Approval } from '../server/api.ts';
import { useTexts } from '../texts/index.ts';
import { asksOf } from './asked.ts';
import { MessageView, type Actions } from './MessageView.tsx';

interface Props {
  chatId: string;
  messages: UIMessage[];
  actions: Actions | undefined;
  isBusy: boolean;
  stopped: ReadonlySet<string>;
  pending: Approval[] | undefined;
  /** What stands below the messages. */
  children?: ReactNode;
}

// How near to the end counts as being there.
const NEAR = 80;

/** The messages, kept at their end while the person is there. */
export function Messages({ chatId, messages, actions, isBusy, stopped, pending, children }: Props) {
  const t = useTexts();
  const scroll = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const node = scroll.current;
    if (node !== null && isAtEnd.current) node.scrollTop = node.scrollHeight;
  });
  const log = useRef<HTMLDivElement>(null);
  const asks = messages.flatMap(asksOf).length;
  const askedBefore = useRef(asks);
  useEffect(() => {
    // The focus went with the buttons that were pressed; whoever uses keys goes on from here.
    const isLost = asks < askedBefore.current && document.activeElement === document.body;
    if (isLost) log.current?.focus({ preventScroll: true });
    askedBefore.current = asks;
  }, [asks]);
  const last = messages.at(-1);
  return (
    <div
      className="scroll"
      ref={scroll}
      onScroll={({ currentTarget: node }) => {
        isAtEnd.current = node.scrollHeight - node.scrollTop - node.clientHeight < NEAR;
      }}
    >
      <div ref={log} className="messages" role="log" aria-label={t.conversation} aria-busy={isBusy} tabIndex={0}>
        {messages.map(message => (
          <MessageView
            key={message.id}
            chatId={chatId}
            message={message}
            actions={actions}
            isLast={message === last}
            isStreaming={isBusy && (message === last || message.role === 'user')}
            isStopped={stopped.has(message.id)}
            pending={pending}
          />
        ))}
        {isBusy && !isSpeaking(last) && (
          <p className="waiting" role="status">
            <span aria-hidden />
            <span aria-hidden />
            <span aria-hidden />
            <span className="unseen">{t.waiting}</span>
          </p>
        )}
      </div>
      {children}
    </div>
  );
}

const isSpeaking = (message: UIMessage | undefined): boolean => {
  const part = message?.role === 'assistant' ? message.parts.at(-1) : undefined;
  return part?.type === 'text' && part.state === 'streaming';
};
