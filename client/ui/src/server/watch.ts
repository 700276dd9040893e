// Looks at the server now and then: which chats there are, what waits for a decision, and whether it
// answers at all. One watch for the page; everything that may have changed elsewhere is seen here.

import { useEffect, useSyncExternalStore } from 'react';

import { chats, pendingApprovals, Refusal, type Approval, type ChatInfo } from './api.ts';

export interface Seen {
  /** Undefined until the first look succeeded. */
  chats: ChatInfo[] | undefined;
  pending: Approval[] | undefined;
  /** False while the server does not answer. */
  isReachable: boolean;
  /** How many looks succeeded; one that began after something happened has seen it. */
  looks: number;
}

const EVERY = 2500;
const EVERY_WHILE_LOST = 1000;

let seen: Seen = { chats: undefined, pending: undefined, isReachable: true, looks: 0 };
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | undefined;
let looking: Promise<void> | undefined;
// The one that follows, for those who asked while one was under way.
let next: Promise<void> | undefined;

function set(next: Partial<Seen>): void {
  seen = { ...seen, ...next };
  for (const listener of listeners) listener();
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

async function look(): Promise<void> {
  clearTimeout(timer);
  try {
    const [nowChats, nowPending] = await Promise.all([chats(), pendingApprovals()]);
    set({
      chats: same(seen.chats, nowChats) ? seen.chats : nowChats,
      pending: same(seen.pending, nowPending) ? seen.pending : nowPending,
      isReachable: true,
      looks: seen.looks + 1,
    });
  } catch (error) {
    // Who is refused, as after a session ended, has an answer.
    set({ isReachable: error instanceof Refusal && error.status < 500 });
  }
  timer = setTimeout(glance, seen.isReachable ? EVERY : EVERY_WHILE_LOST);
}

function glance(): void {
  if (!document.hidden) void lookNow();
}

/** Looks at once, or right after a look that began before; several callers share one. */
export function lookNow(): Promise<void> {
  if (looking !== undefined) {
    next ??= looking.then(() => {
      next = undefined;
      return lookNow();
    });
    return next;
  }
  looking = look().finally(() => {
    looking = undefined;
  });
  return looking;
}

/** Keeps looking while the page is shown. */
export function useWatch(): void {
  useEffect(() => {
    const onShown = () => glance();
    document.addEventListener('visibilitychange', onShown);
    addEventListener('online', onShown);
    addEventListener('focus', onShown);
    void lookNow();
    return () => {
      document.removeEventListener('visibilitychange', onShown);
      removeEventListener('online', onShown);
      removeEventListener('focus', onShown);
      clearTimeout(timer);
    };
  }, []);
}

export const useSeen = (): Seen =>
  useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => seen,
  );
