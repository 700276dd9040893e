import { useTexts } from '../texts/index.ts';
import type { VoiceControl } from './useVoice.ts';

/** What is heard, and that something is said. */
export function Captions({ voice, caption }: { voice: VoiceControl; caption: string }) {
  const t = useTexts();
  if (voice.state === 'talking' || caption !== '') {
    return (
      <p className="captions" role="status">
        <strong>{caption === '' ? t.listening : t.hearing}</strong> {caption}
      </p>
    );
  }
  if (!voice.isPlaying) return null;
  return (
    <p className="captions" role="status">
      <strong>{t.speaking}</strong>
    </p>
  );
}
