import type { FileUIPart } from 'ai';
import type { BrowserTool } from 'adk-stream-client';
import { useCallback, useEffect, useState } from 'react';

import { keepInAddress } from '../app/address.ts';
import { usePrefs } from '../app/prefs.ts';
import { useSeen } from '../server/watch.ts';
import { useTexts } from '../texts/index.ts';
import { Captions } from '../voice/Captions.tsx';
import { TalkButton } from '../voice/TalkButton.tsx';
import { useVoice } from '../voice/useVoice.ts';
import { asksOf } from './asked.ts';
import { Composer, type Draft } from './Composer.tsx';
import { useConversation } from './conversation.ts';
import { Messages } from './Messages.tsx';
import { Notice } from './Notice.tsx';
import type { PageTransport } from './route.ts';
import { Welcome } from './Welcome.tsx';

interface Props {
  chatId: string;
  transport: PageTransport;
  tools: Record<string, BrowserTool>;
  active: { chatId: string; times: number };
  /** The messages whose reply was stopped while the page looked. */
  stopped: ReadonlySet<string>;
}

const NOTHING: Draft = { text: '', files: [] };
// What was typed and not sent, by chat, as long as the page is open.
const drafts = new Map<string, Draft>();

export function ChatPane({ chatId, transport, tools, active, stopped }: Props) {
  const t = useTexts();
  const { mode } = usePrefs();
  const { pending } = useSeen();
  const [draft, setDraft] = useState(() => drafts.get(chatId) ?? NOTHING);
  useEffect(() => {
    if (draft === NOTHING) drafts.delete(chatId);
    else drafts.set(chatId, draft);
  }, [chatId, draft]);
  const onUnsent = useCallback((text: string, files: FileUIPart[]) => {
    // What was typed meanwhile is not lost for it.
    setDraft(now => ({ text: now.text || text, files: now.files.length > 0 ? now.files : files }));
  }, []);
  const conversation = useConversation({ chatId, transport, tools, onUnsent, active });
  const { messages, actions, notice, setNotice, isBusy, isLoading } = conversation;

  const onFault = useCallback((text: string) => setNotice({ kind: 'fault', text }), [setNotice]);
  const onVoice = useCallback(() => keepInAddress(chatId), [chatId]);
  const voice = useVoice(chatId, onVoice, onFault);
  // A socket that never asked for this chat would not be told that a spoken turn began.
  const hears = voice.state !== 'closed';
  useEffect(() => {
    if (hears && !isBusy) conversation.follow();
  }, [hears]);
  useEffect(() => {
    if (mode !== 'live') voice.close();
  }, [mode]);

  const send = () => {
    const { text, files } = draft;
    setDraft(NOTHING);
    conversation.say(text.trim(), files);
  };
  const asks = messages.flatMap(asksOf).length;

  return (
    <>
      <Messages
        chatId={chatId}
        messages={messages}
        actions={actions}
        isBusy={isBusy}
        stopped={stopped}
        pending={pending}
      >
        {messages.length === 0 && !isLoading && !isBusy && (
          <Welcome onChoose={text => conversation.say(text, [])} />
        )}
      </Messages>
      <div className="foot">
        {notice && (
          <Notice content={notice} {...(!conversation.isLost && { dismiss: () => setNotice(null) })} />
        )}
        {asks > 0 && !notice && (
          <Notice
            content={{
              kind: 'info',
              text: t.waitsForYou(asks),
              action: { label: t.giveUp, run: conversation.stop },
            }}
          />
        )}
        <Captions voice={voice} caption={conversation.caption} />
        <Composer
          draft={draft}
          setDraft={setDraft}
          isBusy={isBusy}
          isStopping={conversation.isStopping}
          onSend={send}
          onStop={conversation.stop}
          onRefused={text => setNotice({ kind: 'fault', text })}
        >
          {mode === 'live' && <TalkButton voice={voice} />}
        </Composer>
      </div>
    </>
  );
}
