import { Inbox, MessageSquarePlus, Trash2 } from 'lucide-react';
import { useState } from 'react';

import { plain } from '../approvals/visible.ts';
import { deleteChat, type ChatInfo } from '../server/api.ts';
import { lookNow, useSeen } from '../server/watch.ts';
import { useTexts } from '../texts/index.ts';
import { addressOf, openNewChat } from './address.ts';
import { Dialog } from './Dialog.tsx';
import { SettingsMenu } from './SettingsMenu.tsx';

interface Props {
  chatId: string;
  onInbox: () => void;
  /** Called when a chat was chosen, which closes the side bar on a phone. */
  onLeave: () => void;
}

export function Sidebar({ chatId, onInbox, onLeave }: Props) {
  const t = useTexts();
  const { chats, pending } = useSeen();
  const [leaving, setLeaving] = useState<ChatInfo>();
  const [fault, setFault] = useState('');
  const waiting = new Set(pending?.map(approval => approval.chatId));
  const count = pending?.length ?? 0;

  const remove = async ({ id }: ChatInfo) => {
    setFault('');
    try {
      await deleteChat(id);
      setLeaving(undefined);
      if (id === chatId) openNewChat();
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
    await lookNow();
  };

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
      {chats?.length === 0 && <p className="about">{t.noChats}</p>}
      <ul className="chats">
        {chats?.map(chat => {
          const title = plain(chat.title) || t.untitled;
          return (
            <li key={chat.id} className={chat.id === chatId ? 'here' : undefined}>
              <a
                href={addressOf(chat.id)}
                title={title}
                aria-current={chat.id === chatId ? 'page' : undefined}
                onClick={onLeave}
              >
                {waiting.has(chat.id) && <span className="dot" role="img" aria-label={t.needsApproval} />}
                {title}
              </a>
              <button type="button" className="icon small" onClick={() => {
                  setFault('');
                  setLeaving(chat);
                }}>
                <Trash2 aria-hidden />
                <span className="unseen">{t.deleteChat(title)}</span>
              </button>
            </li>
          );
        })}
      </ul>
      <SettingsMenu />
      {leaving && (
        <Dialog title={t.deleteAsk(plain(leaving.title) || t.untitled)} onClose={() => setLeaving(undefined)}>
          <p>{t.deleteTold}</p>
          {fault && (
            <p className="fault" role="alert">
              {fault}
            </p>
          )}
          <div className="buttons">
            <button type="button" onClick={() => setLeaving(undefined)}>
              {t.cancel}
            </button>
            <button type="button" className="danger" onClick={() => void remove(leaving)}>
              {t.delete}
            </button>
          </div>
        </Dialog>
      )}
    </nav>
  );
}
