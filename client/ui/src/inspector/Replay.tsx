import { Chat, useChat } from '@ai-sdk/react';
import { parseRecording, ReplayTransport, type Recording } from 'adk-stream-client';
import type { UIMessage } from 'ai';
import { useEffect, useMemo, useState } from 'react';

import { Messages } from '../chat/Messages.tsx';
import { Notice } from '../chat/Notice.tsx';
import { useTexts } from '../texts/index.ts';

const NONE: ReadonlySet<string> = new Set();

/** A recording, played as it was recorded. Nothing in it can be answered. */
export function Replay({ file, onLeave }: { file: File; onLeave: () => void }) {
  const t = useTexts();
  const [recording, setRecording] = useState<Recording>();
  const [fault, setFault] = useState('');
  useEffect(() => {
    setRecording(undefined);
    setFault('');
    file
      .text()
      .then(text => setRecording(parseRecording(text)))
      .catch((error: unknown) => setFault(error instanceof Error ? error.message : String(error)));
  }, [file]);
  const leave = { label: t.replayEnd, run: onLeave };
  return (
    <>
      {recording && <Played recording={recording} />}
      <div className="foot">
        {fault && <Notice content={{ kind: 'fault', text: `${t.replayBad} ${fault}`, action: leave }} />}
        {!fault && (
          <Notice
            content={{ kind: 'info', text: `${t.replaying(file.name)}. ${t.replayTold}`, action: leave }}
          />
        )}
      </div>
    </>
  );
}

function Played({ recording }: { recording: Recording }) {
  const chat = useMemo(
    () =>
      new Chat<UIMessage>({
        id: 'replay',
        transport: new ReplayTransport(recording, { pace: 'recorded' }),
      }),
    [recording],
  );
  const { messages, status } = useChat({ chat, throttle: 40 });
  useEffect(() => {
    const left = { isLeft: false };
    void play(chat, recording, left);
    return () => {
      left.isLeft = true;
      void chat.stop();
    };
  }, [chat, recording]);
  return (
    <Messages
      chatId="replay"
      messages={messages}
      actions={undefined}
      isBusy={status === 'submitted' || status === 'streaming'}
      stopped={NONE}
      pending={undefined}
    />
  );
}

/** Says what was said, each after the reply to what was said before. */
async function play(chat: Chat<UIMessage>, recording: Recording, left: { isLeft: boolean }): Promise<void> {
  for (const entry of recording.entries) {
    if (left.isLeft) return;
    if (entry.type !== 'send') continue;
    const message = (entry as { messages?: UIMessage[] }).messages?.at(-1);
    if (message?.role === 'user') await chat.sendMessage(message);
    // An answer to held calls continues the message that is there.
    else await chat.sendMessage();
  }
}
