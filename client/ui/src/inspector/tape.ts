// What the inspector shows: one recorder for the page, drawn at most once a frame.

import { Recorder, type RecordingEntry } from 'adk-stream-client';
import { useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
const followers = new Set<(entry: RecordingEntry) => void>();
let shown: readonly RecordingEntry[] = [];
let isDue = false;

export const recorder = new Recorder({
  onEntry: entry => {
    for (const follower of followers) follower(entry);
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(refresh);
  },
});

/** Calls for each entry from now on; returns what ends that. */
export function followTape(follower: (entry: RecordingEntry) => void): () => void {
  followers.add(follower);
  return () => followers.delete(follower);
}

function refresh(): void {
  isDue = false;
  shown = recorder.entries;
  for (const listener of listeners) listener();
}

export function clearTape(): void {
  recorder.clear();
  refresh();
}

export const useTape = (): readonly RecordingEntry[] =>
  useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
