import { Mic, VolumeX } from 'lucide-react';
import type { KeyboardEvent } from 'react';

import { useTexts } from '../texts/index.ts';
import type { VoiceControl } from './useVoice.ts';

const isPress = ({ key }: KeyboardEvent): boolean => key === ' ' || key === 'Enter';

/** Talks while it is held, by pointer or by key. */
export function TalkButton({ voice }: { voice: VoiceControl }) {
  const t = useTexts();
  const isTalking = voice.state === 'talking' || voice.state === 'opening';
  return (
    <>
      {voice.isPlaying && (
        <button type="button" className="icon" title={t.stopSound} onClick={voice.close}>
          <VolumeX aria-hidden />
          <span className="unseen">{t.stopSound}</span>
        </button>
      )}
      <button
        type="button"
        className={isTalking ? 'icon talk talking' : 'icon talk'}
        title={t.talkTold}
        aria-pressed={isTalking}
        style={{ '--level': voice.level } as React.CSSProperties}
        onPointerDown={event => {
          // Also when the pointer leaves the button while it is held.
          event.currentTarget.setPointerCapture(event.pointerId);
          voice.talk();
        }}
        onPointerUp={voice.pause}
        onPointerCancel={voice.pause}
        onKeyDown={event => {
          if (!isPress(event)) return;
          event.preventDefault();
          if (!event.repeat) voice.talk();
        }}
        onKeyUp={event => {
          if (isPress(event)) voice.pause();
        }}
        onBlur={() => isTalking && voice.pause()}
      >
        <Mic aria-hidden />
        <span className="unseen">{t.talk}</span>
      </button>
    </>
  );
}
