// Looks at the server now and then: which chats there are, what waits for a decision, and whether it
// answers at all. One watch for the page; everything that may have changed elsewhere is seen here.

import { useEffect, useSyncExternalStore } from 'react';

import { chats, pendingApprovals, Refusal, type Approval, type ChatInfo } from './api.ts';

export interface Seen {
  /** The newest ones. Undefined until the first look succeeded. */
  chats: ChatInfo[] | undefined;
  /** Whether there are older ones than these. */
  hasOlderChats: boolean;
  /** Undefined until somebody looks into the archive. */
  archived: ChatInfo[] | undefined;
  /** Chats that were met elsewhere than in the lists, by id; null: there is none, or it is another's. */
  met: Readonly<Record<string, ChatInfo | null>>;
  pending: Approval[] | undefined;
  /** False while the server does not answer. */
  isReachable: boolean;
  /** How many looks succeeded; one that began after something happened has seen it. */
  looks: number;
}

// More than anybody reads through; older ones are found by their addresses.
const ARCHIVE_PAGES = 10;

const EVERY = 2500;
const EVERY_WHILE_LOST = 1000;

let seen: Seen = {
  chats: undefined,
  hasOlderChats: false,
  archived: undefined,
  met: {},
  pending: undefined,
  isReachable: true,
  looks: 0,
};
// How much of the lists is looked at.
let pages = 1;
let isArchiveOpen = false;
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
    const [listed, archived, nowPending] = await Promise.all([
      chats(pages, false),
      isArchiveOpen ? chats(ARCHIVE_PAGES, true) : undefined,
      pendingApprovals(),
    ]);
    set({
      chats: same(seen.chats, listed.chats) ? seen.chats : listed.chats,
      hasOlderChats: listed.hasMore,
      archived: archived === undefined || same(seen.archived, archived.chats) ? seen.archived : archived.chats,
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

/** Looks further back from now on. */
export function showOlderChats(): void {
  pages += 1;
  void lookNow();
}

/** Looks at archived chats as well, or no longer. */
export function showArchive(isShown: boolean): void {
  isArchiveOpen = isShown;
  if (isShown) void lookNow();
}

/** Notes a chat that may be in no list: it is old, archived, or somebody else's (null). */
export function noteChat(id: string, info: ChatInfo | null): void {
  let known: ChatInfo | null = null;
  if (info !== null) {
    // Without its messages, which a chat that was loaded has.
    const { title, createdAt, updatedAt, archived } = info;
    known = { id, title, createdAt, updatedAt, archived };
  }
  if (!same(seen.met[id], known)) set({ met: { ...seen.met, [id]: known } });
}

/** Returns what is known of a chat; null: it is not this user's; undefined: nothing is known yet. */
export function infoOf({ chats, archived, met }: Seen, id: string): ChatInfo | null | undefined {
  const isIt = (chat: ChatInfo) => chat.id === id;
  return chats?.find(isIt) ?? archived?.find(isIt) ?? met[id];
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
