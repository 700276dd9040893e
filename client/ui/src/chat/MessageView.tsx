import { Pencil, RefreshCw } from 'lucide-react';
import { isToolUIPart, type UIMessage } from 'ai';
import { memo, useState } from 'react';

import { ApprovalCard } from '../approvals/ApprovalCard.tsx';
import { CopyButton } from '../parts/CopyButton.tsx';
import { DataPart } from '../parts/DataPart.tsx';
import { FilePart } from '../parts/FilePart.tsx';
import { Markdown } from '../parts/Markdown.tsx';
import { QuestionCard } from '../parts/QuestionCard.tsx';
import { Reasoning } from '../parts/Reasoning.tsx';
import { SourcePart } from '../parts/SourcePart.tsx';
import { ToolCard } from '../parts/ToolCard.tsx';
import type { Approval, Card, Verdict } from '../server/api.ts';
import { useTexts } from '../texts/index.ts';
import {
  askedBy,
  callsAskedFor,
  cardsOf,
  isAnswering,
  isConfirmation,
  isQuestion,
  textOf,
  type Asked,
  type ToolPart,
} from './asked.ts';

/** What can be done in a chat; the same object as long as the chat is the same. */
export interface Actions {
  decide: (asked: Asked, verdict: Verdict) => Promise<void>;
  answer: (part: ToolPart, text: string) => void;
  edit: (messageId: string, text: string) => void;
  regenerate: (messageId: string) => void;
}

interface Props {
  chatId: string;
  message: UIMessage;
  /** Undefined where nothing can be done: in a replay. */
  actions: Actions | undefined;
  isStreaming: boolean;
  isLast: boolean;
  isStopped: boolean;
  /** The approvals of the whole page that wait: in the profile `adk`, the wire tells less of them. */
  pending: Approval[] | undefined;
}

export const MessageView = memo(function MessageView(props: Props) {
  return props.message.role === 'user' ? <UserMessage {...props} /> : <AgentMessage {...props} />;
});

function UserMessage({ message, actions, isStreaming }: Props) {
  const t = useTexts();
  const [draft, setDraft] = useState<string>();
  const text = textOf(message);
  return (
    <article className="user" aria-label={t.you}>
      {message.parts.map((part, at) => (part.type === 'file' ? <FilePart key={at} {...part} /> : null))}
      {draft === undefined ? (
        text && <div className="bubble">{text}</div>
      ) : (
        <form
          className="bubble edit"
          onSubmit={event => {
            event.preventDefault();
            if (draft.trim() === '') return;
            setDraft(undefined);
            actions?.edit(message.id, draft.trim());
          }}
        >
          <textarea
            aria-label={t.message}
            value={draft}
            rows={Math.min(10, draft.split('\n').length + 1)}
            onChange={event => setDraft(event.target.value)}
            autoFocus
          />
          <p className="about">{t.editTold}</p>
          <div className="buttons">
            <button type="button" onClick={() => setDraft(undefined)}>
              {t.cancel}
            </button>
            <button type="submit" className="approve">
              {t.saveEdit}
            </button>
          </div>
        </form>
      )}
      {draft === undefined && actions && (
        <div className="tools">
          <CopyButton text={() => text} />
          {text && !isStreaming && (
            <button type="button" className="icon small" title={t.edit} onClick={() => setDraft(text)}>
              <Pencil aria-hidden />
              <span className="unseen">{t.edit}</span>
            </button>
          )}
        </div>
      )}
    </article>
  );
}

function AgentMessage({ chatId, message, actions, isStreaming, isLast, isStopped, pending }: Props) {
  const t = useTexts();
  const cards = cardsOf(message);
  const asked = callsAskedFor(message);
  const text = textOf(message);
  let isFirstAsk = true;
  return (
    <article className="agent" aria-label={t.agent}>
      {message.parts.map((part, at) => {
        if (isToolUIPart(part)) {
          const ask = askedBy(part);
          const takesFocus = ask !== undefined && isFirstAsk && isLast;
          if (ask !== undefined) isFirstAsk = false;
          return (
            <CallView
              key={part.toolCallId}
              part={part}
              ask={ask}
              card={cards.get(ask?.callId ?? part.toolCallId)}
              isAskedFor={asked.has(part.toolCallId)}
              takesFocus={takesFocus}
              actions={actions}
              pending={pending}
            />
          );
        }
        switch (part.type) {
          case 'text':
            return <Markdown key={at} text={part.text} isOpen={part.state === 'streaming'} />;
          case 'reasoning':
            return <Reasoning key={at} text={part.text} isOpen={isStreaming && part.state === 'streaming'} />;
          case 'file':
            return <FilePart key={at} {...part} />;
          case 'source-url':
            return <SourcePart key={at} url={part.url} {...(part.title && { title: part.title })} />;
          case 'source-document':
            return <SourcePart key={at} title={part.title} />;
          default:
            if (!part.type.startsWith('data-')) return null;
            return (
              <DataPart key={at} chatId={chatId} type={part.type} data={(part as { data: unknown }).data} />
            );
        }
      })}
      {isStopped && <p className="about">{t.stopped}</p>}
      {actions && !isStreaming && (
        <div className="tools">
          {text && <CopyButton text={() => text} />}
          {isLast && asked.size === 0 && !isAnswering(message) && (
            <button
              type="button"
              className="icon small"
              title={t.regenerate}
              onClick={() => actions.regenerate(message.id)}
            >
              <RefreshCw aria-hidden />
              <span className="unseen">{t.regenerate}</span>
            </button>
          )}
        </div>
      )}
    </article>
  );
}

interface CallProps {
  part: ToolPart;
  ask: Asked | undefined;
  card: Card | undefined;
  /** Whether a confirmation of this call waits: then it shows the call. */
  isAskedFor: boolean;
  takesFocus: boolean;
  actions: Actions | undefined;
  pending: Approval[] | undefined;
}

function CallView({ part, ask, card, isAskedFor, takesFocus, actions, pending }: CallProps) {
  if (ask !== undefined && actions !== undefined) {
    return (
      <ApprovalCard
        approvalId={ask.approvalId}
        toolName={ask.toolName}
        input={ask.input}
        hint={ask.hint}
        card={card ?? pending?.find(({ id }) => id === ask.approvalId)}
        takesFocus={takesFocus}
        decide={verdict => actions.decide(ask, verdict)}
      />
    );
  }
  // Once it is answered, the call that it asked for tells the rest.
  if (isConfirmation(part)) return null;
  if (isQuestion(part) && actions !== undefined) {
    return <QuestionCard input={part.input} answer={text => actions.answer(part, text)} />;
  }
  if (isAskedFor && ask === undefined && part.state === 'input-available' && actions !== undefined) return null;
  return <ToolCard part={part} card={card} isWaiting={isAskedFor} />;
}
