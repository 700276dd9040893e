// What a person chose, kept in this browser.

import { useSyncExternalStore } from 'react';

export type Mode = 'sse' | 'ws' | 'live';
export type Profile = 'ai-sdk' | 'adk';
export type Theme = 'system' | 'light' | 'dark';
export type Language = 'en' | 'ja';

export interface Prefs {
  mode: Mode;
  profile: Profile;
  theme: Theme;
  language: Language;
}

const KEY = 'adk-stream';
const CHOICES: { [Name in keyof Prefs]: readonly Prefs[Name][] } = {
  mode: ['sse', 'ws', 'live'],
  profile: ['ai-sdk', 'adk'],
  theme: ['system', 'light', 'dark'],
  language: ['en', 'ja'],
};

let prefs = read();
const listeners = new Set<() => void>();

function read(): Prefs {
  const defaults: Prefs = {
    mode: 'sse',
    profile: 'ai-sdk',
    theme: 'system',
    language: navigator.language.startsWith('ja') ? 'ja' : 'en',
  };
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Prefs>;
    const valid = Object.entries(kept).filter(([name, value]) =>
      (CHOICES[name as keyof Prefs] as readonly unknown[] | undefined)?.includes(value),
    );
    return settled({ ...defaults, ...Object.fromEntries(valid) });
  } catch {
    // Storage may be turned off; then nothing is kept.
    return defaults;
  }
}

/** Returns prefs that exist together: a unary WebSocket has only the profile `ai-sdk`. */
function settled(wanted: Prefs): Prefs {
  return wanted.mode === 'ws' ? { ...wanted, profile: 'ai-sdk' } : wanted;
}

export function choose(change: Partial<Prefs>): void {
  prefs = settled({ ...prefs, ...change });
  try {
    localStorage.setItem(KEY, JSON.stringify(prefs));
  } catch {
    // As above.
  }
  for (const listener of listeners) listener();
}

export function usePrefs(): Prefs {
  return useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => prefs,
  );
}

export const currentPrefs = (): Prefs => prefs;
