import { Inbox, MessageSquarePlus } from 'lucide-react';
import { useState } from 'react';

import type { ChatInfo } from '../server/api.ts';
import { showArchive, showOlderChats, useSeen } from '../server/watch.ts';
import { useTexts } from '../texts/index.ts';
import { openNewChat } from './address.ts';
import { ChangeChat } from './ChangeChat.tsx';
import { ChatList } from './ChatList.tsx';
import { DeleteChat } from './DeleteChat.tsx';
import { SettingsMenu } from './SettingsMenu.tsx';

interface Props {
  chatId: string;
  onInbox: () => void;
  /** Called when a chat was chosen, which closes the side bar on a phone. */
  onLeave: () => void;
}

export function Sidebar({ chatId, onInbox, onLeave }: Props) {
  const t = useTexts();
  const { chats, hasOlderChats, archived, pending } = useSeen();
  const [changing, setChanging] = useState<ChatInfo>();
  const [leaving, setLeaving] = useState<ChatInfo>();
  const count = pending?.length ?? 0;
  const rows = { chatId, onLeave, onChange: setChanging, onDelete: setLeaving };

  return (
    <nav className="side" aria-label={t.chats}>
      <div className="brand">
        <span className="logo" aria-hidden />
        <strong>adk-stream</strong>
      </div>
      <button
        type="button"
        className="row primary"
        onClick={() => {
          openNewChat();
          onLeave();
        }}
      >
        <MessageSquarePlus aria-hidden /> {t.newChat}
      </button>
      <button type="button" className="row" onClick={onInbox}>
        <Inbox aria-hidden /> {t.inbox}
        {count > 0 && (
          <span className="count" aria-label={t.inboxCount(count)}>
            {count}
          </span>
        )}
      </button>
      <h2>{t.chats}</h2>
      <div className="chats">
        {chats?.length === 0 && <p className="about">{t.noChats}</p>}
        <ChatList chats={chats} {...rows} />
        {hasOlderChats && (
          <button type="button" className="row" onClick={showOlderChats}>
            {t.olderChats}
          </button>
        )}
        <details onToggle={event => showArchive(event.currentTarget.open)}>
          <summary>{t.archive}</summary>
          {archived?.length === 0 && <p className="about">{t.archiveEmpty}</p>}
          <ChatList chats={archived} {...rows} />
        </details>
      </div>
      <SettingsMenu />
      {changing && <ChangeChat chat={changing} onClose={() => setChanging(undefined)} />}
      {leaving && (
        <DeleteChat chat={leaving} isOpen={leaving.id === chatId} onClose={() => setLeaving(undefined)} />
      )}
    </nav>
  );
}
