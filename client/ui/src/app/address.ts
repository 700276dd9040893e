// The chat that the address names: what follows the #.

import { useSyncExternalStore } from 'react';

export const newId = (kind: string): string => {
  // Not crypto.randomUUID: it is missing where the page comes over plain http from another machine.
  const numbers = [...crypto.getRandomValues(new Uint32Array(4))];
  return `${kind}-${numbers.map(n => n.toString(16).padStart(8, '0')).join('')}`;
};

const listeners = new Set<() => void>();
// The id of a chat that nothing was said in: it is not in the address yet.
let fresh = newId('chat');
addEventListener('hashchange', () => {
  if (!location.hash) fresh = newId('chat');
  for (const listener of listeners) listener();
});

function chatId(): string {
  try {
    return decodeURIComponent(location.hash.slice(1)) || fresh;
  } catch {
    return fresh; // Not an address of ours.
  }
}

/** Returns the id of the chat that is shown. */
export const useChatId = (): string =>
  useSyncExternalStore(listener => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chatId);

/** Says whether the address names a chat; else nothing was said in the one that is shown. */
export const isInAddress = (): boolean => location.hash.length > 1;

/** Puts a new chat into the address, once something was said in it. */
export function keepInAddress(id: string): void {
  if (location.hash !== addressOf(id)) history.replaceState(null, '', addressOf(id));
  for (const listener of listeners) listener();
}

export const addressOf = (id: string): string => `#${encodeURIComponent(id)}`;

export function openNewChat(): void {
  if (location.hash) {
    location.hash = '';
    return;
  }
  fresh = newId('chat');
  for (const listener of listeners) listener();
}
