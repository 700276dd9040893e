import { Pencil, Trash2 } from 'lucide-react';

import { plain } from '../approvals/visible.ts';
import type { ChatInfo } from '../server/api.ts';
import { useSeen } from '../server/watch.ts';
import { useTexts } from '../texts/index.ts';
import { addressOf } from './address.ts';

interface Props {
  /** Undefined: they are not known yet. */
  chats: ChatInfo[] | undefined;
  /** The one that is open. */
  chatId: string;
  onLeave: () => void;
  onChange: (chat: ChatInfo) => void;
  onDelete: (chat: ChatInfo) => void;
}

/** Chats to choose from, with a dot where something waits. */
export function ChatList({ chats, chatId, onLeave, onChange, onDelete }: Props) {
  const t = useTexts();
  const waiting = new Set(useSeen().pending?.map(approval => approval.chatId));
  return (
    <ul>
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
            <button type="button" className="icon small" onClick={() => onChange(chat)}>
              <Pencil aria-hidden />
              <span className="unseen">{t.changeChat(title)}</span>
            </button>
            <button type="button" className="icon small" onClick={() => onDelete(chat)}>
              <Trash2 aria-hidden />
              <span className="unseen">{t.deleteChat(title)}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
