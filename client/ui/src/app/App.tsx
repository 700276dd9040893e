import { Activity, Menu, Music, VolumeX } from 'lucide-react';
import { changeBgm, getLocation, type BrowserTool } from 'adk-stream-client';
import { useEffect, useMemo, useState } from 'react';

import { Inbox } from '../approvals/Inbox.tsx';
import { plain, visible } from '../approvals/visible.ts';
import { ChatPane } from '../chat/ChatPane.tsx';
import { PageTransport } from '../chat/route.ts';
import { Inspector } from '../inspector/Inspector.tsx';
import { Replay } from '../inspector/Replay.tsx';
import { followTape, recorder } from '../inspector/tape.ts';
import { infoOf, useSeen, useWatch } from '../server/watch.ts';
import { useTexts } from '../texts/index.ts';
import { useChatId } from './address.ts';
import { Choice } from './Choice.tsx';
import { music, useTrack } from './music.ts';
import { choose, usePrefs, type Mode, type Profile } from './prefs.ts';
import { Sidebar } from './Sidebar.tsx';

const MODES: Mode[] = ['sse', 'ws', 'live'];
const PROFILES: Profile[] = ['ai-sdk', 'adk'];
// The tools that this page runs. Those of an agent of your own belong into a page of your own.
const TOOLS: Record<string, BrowserTool> = { get_location: getLocation(), change_bgm: changeBgm(music) };

export function App() {
  const t = useTexts();
  const prefs = usePrefs();
  const chatId = useChatId();
  const seen = useSeen();
  const [isSideOpen, setSideOpen] = useState(false);
  const [isInboxOpen, setInboxOpen] = useState(false);
  const [isInspectorOpen, setInspectorOpen] = useState(false);
  const [replayed, setReplayed] = useState<File>();
  const [active, setActive] = useState({ chatId: '', times: 0 });
  const transport = useMemo(
    () => new PageTransport(recorder, id => setActive(({ times }) => ({ chatId: id, times: times + 1 }))),
    [],
  );
  const stopped = useStopped();
  useWatch();
  // Who goes to a chat leaves the replay.
  useEffect(() => setReplayed(undefined), [chatId]);

  useEffect(() => {
    const root = document.documentElement;
    root.lang = prefs.language;
    if (prefs.theme === 'system') delete root.dataset.theme;
    else root.dataset.theme = prefs.theme;
  }, [prefs.language, prefs.theme]);
  const title = plain(infoOf(seen, chatId)?.title ?? '') || t.newChat;
  useEffect(() => {
    document.title = `${title} · adk-stream`;
  }, [title]);

  return (
    <div className={isSideOpen ? 'page side-open' : 'page'}>
      <Sidebar
        chatId={chatId}
        onInbox={() => {
          setInboxOpen(true);
          setSideOpen(false);
        }}
        onLeave={() => setSideOpen(false)}
      />
      {isSideOpen && (
        <button type="button" className="veil" onClick={() => setSideOpen(false)}>
          <span className="unseen">{t.closeChats}</span>
        </button>
      )}
      <main>
        <header className="head">
          <button
            type="button"
            className="icon side-toggle"
            aria-expanded={isSideOpen}
            title={t.showChats}
            onClick={() => setSideOpen(!isSideOpen)}
          >
            <Menu aria-hidden />
            <span className="unseen">{t.showChats}</span>
          </button>
          <h1>{title}</h1>
          <Track />
          <Choice
            legend={t.mode}
            value={prefs.mode}
            onChoose={mode => choose({ mode })}
            choices={MODES.map(value => ({ value, label: t.modes[value], title: t.modesTold[value] }))}
          />
          <Choice
            legend={t.profile}
            value={prefs.profile}
            onChoose={profile => choose({ profile })}
            choices={PROFILES.map(value => {
              const isDisabled = value === 'adk' && prefs.mode === 'ws';
              return {
                value,
                label: value,
                title: isDisabled ? t.noAdkOverWebSocket : t.profilesTold[value],
                isDisabled,
              };
            })}
          />
          <button
            type="button"
            className="icon"
            aria-pressed={isInspectorOpen}
            title={t.inspector}
            onClick={() => setInspectorOpen(!isInspectorOpen)}
          >
            <Activity aria-hidden />
            <span className="unseen">{t.inspector}</span>
          </button>
        </header>
        {replayed === undefined ? (
          <ChatPane
            key={chatId}
            chatId={chatId}
            transport={transport}
            tools={TOOLS}
            active={active}
            stopped={stopped}
          />
        ) : (
          <Replay file={replayed} onLeave={() => setReplayed(undefined)} />
        )}
      </main>
      {isInspectorOpen && <Inspector onClose={() => setInspectorOpen(false)} onReplay={setReplayed} />}
      {isInboxOpen && <Inbox onClose={() => setInboxOpen(false)} />}
    </div>
  );
}

function Track() {
  const t = useTexts();
  const track = useTrack();
  if (track === undefined) return null;
  return (
    <span className="track">
      <Music aria-hidden />
      <span>{visible(track)}</span>
      <button type="button" className="icon small" title={t.stopMusic} onClick={music.stop}>
        <VolumeX aria-hidden />
        <span className="unseen">{t.stopMusic}</span>
      </button>
    </span>
  );
}

/** Returns the messages whose reply ended by a stop: `useChat` takes no notice of that chunk. */
function useStopped(): ReadonlySet<string> {
  const [stopped, setStopped] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const messages = new Map<string, string>();
    return followTape(entry => {
      const { request, chunk } = entry as { request?: string; chunk?: { type: string; messageId?: string } };
      if (request === undefined || chunk === undefined) return;
      if (chunk.type === 'start' && chunk.messageId !== undefined) messages.set(request, chunk.messageId);
      const id = messages.get(request);
      if (chunk.type === 'abort' && id !== undefined) setStopped(known => new Set(known).add(id));
    });
  }, []);
  return stopped;
}
