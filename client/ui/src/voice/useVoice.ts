import { Voice, type VoiceState } from 'adk-stream-client';
import { useCallback, useEffect, useRef, useState } from 'react';

import { useTexts } from '../texts/index.ts';

export interface VoiceControl {
  state: VoiceState;
  isPlaying: boolean;
  level: number;
  talk: () => void;
  pause: () => void;
  close: () => void;
}

const SILENT = { state: 'closed' as VoiceState, isPlaying: false, level: 0 };

/** The microphone and the speaker of one chat; nothing is opened before the person talks. */
export function useVoice(chatId: string, onBegin: () => void, onFault: (text: string) => void): VoiceControl {
  const t = useTexts();
  const voice = useRef<Voice>(undefined);
  // Whether the button is held: it may be let go before the microphone is there.
  const isHeld = useRef(false);
  const [heard, setHeard] = useState(SILENT);

  useEffect(
    () => () => {
      void voice.current?.close();
      voice.current = undefined;
    },
    [chatId],
  );

  const talk = useCallback(() => {
    isHeld.current = true;
    onBegin();
    voice.current ??= new Voice({
      chatId,
      url: `api/chat/${encodeURIComponent(chatId)}/audio`,
      onState: state => {
        const { isPlaying = false, level = 0 } = voice.current ?? {};
        setHeard({ state, isPlaying, level });
      },
      onError: error => {
        onFault(error instanceof DOMException ? t.microphoneRefused : error.message);
      },
    });
    const { current } = voice;
    current.talk().then(
      () => (isHeld.current ? undefined : current.pause()),
      () => {}, // Told by `onError`.
    );
  }, [chatId, onBegin, onFault, t]);
  const pause = useCallback(() => {
    isHeld.current = false;
    void voice.current?.pause();
  }, []);
  const close = useCallback(() => void voice.current?.close(), []);
  return { ...heard, talk, pause, close };
}
