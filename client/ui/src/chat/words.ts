import type { UIMessage } from 'ai';

/** Returns what is shown, and what a voice said that was not stored yet when the turn was followed. */
export function withWords(shown: UIMessage[], stored: UIMessage[]): UIMessage[] {
  const known = new Map(shown.map(message => [message.id, message]));
  if (stored.every(({ id, role }) => role !== 'user' || known.has(id))) return shown;
  const told = stored.filter(({ id, role }) => role === 'user' || known.has(id));
  const ids = new Set(told.map(({ id }) => id));
  return [...told.map(message => known.get(message.id) ?? message), ...shown.filter(({ id }) => !ids.has(id))];
}
