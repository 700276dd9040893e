// The background music of the demo's `change_bgm`: a quiet chord that depends on the track's name.

import { useSyncExternalStore } from 'react';

let context: AudioContext | undefined;
let track: string | undefined;
const listeners = new Set<() => void>();
const tell = () => {
  for (const listener of listeners) listener();
};

export const music = {
  play(name: string): void {
    void context?.close();
    context = new AudioContext();
    const gain = new GainNode(context, { gain: 0.03 });
    gain.connect(context.destination);
    const pitch = [...name].reduce((sum, char) => sum + (char.codePointAt(0) ?? 0), 0) % 12;
    for (const step of [0, 7, 12, 16]) {
      const frequency = 131 * 2 ** ((pitch + step) / 12);
      const tone = new OscillatorNode(context, { type: 'triangle', frequency });
      tone.connect(gain);
      tone.start();
    }
    track = name;
    tell();
  },
  stop(): void {
    void context?.close();
    context = undefined;
    track = undefined;
    tell();
  },
};

/** Returns what plays; undefined: nothing. */
export const useTrack = (): string | undefined =>
  useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => track,
  );
