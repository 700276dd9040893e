import { useId, useState } from 'react';

import { plain } from '../approvals/visible.ts';
import { changeChat, type ChatChange, type ChatInfo } from '../server/api.ts';
import { lookNow, noteChat } from '../server/watch.ts';
import { useTexts } from '../texts/index.ts';
import { Dialog } from './Dialog.tsx';

// The longest that the server takes.
const LONGEST = 200;

/** Renames a chat, moves it to the archive, or takes it out. */
export function ChangeChat({ chat, onClose }: { chat: ChatInfo; onClose: () => void }) {
  const t = useTexts();
  const field = useId();
  const [title, setTitle] = useState(plain(chat.title));
  const [fault, setFault] = useState('');

  const change = async (changes: ChatChange) => {
    setFault('');
    try {
      noteChat(chat.id, await changeChat(chat.id, changes));
      onClose();
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
    await lookNow();
  };

  return (
    <Dialog title={t.changeChat(plain(chat.title) || t.untitled)} onClose={onClose}>
      <form
        onSubmit={event => {
          event.preventDefault();
          void change({ title: title.trim() || null });
        }}
      >
        <label htmlFor={field}>{t.title}</label>
        <input
          id={field}
          className="reason"
          value={title}
          maxLength={LONGEST}
          aria-describedby={`${field}-about`}
          onChange={event => setTitle(event.target.value)}
        />
        <p id={`${field}-about`} className="about">
          {t.titleEmpty}
        </p>
        {fault && (
          <p className="fault" role="alert">
            {fault}
          </p>
        )}
        <div className="buttons">
          <button type="button" onClick={() => void change({ archived: !chat.archived })}>
            {chat.archived ? t.moveBack : t.moveToArchive}
          </button>
          <button type="button" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="submit" className="approve">
            {t.save}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
