import { useState } from 'react';

import { plain } from '../approvals/visible.ts';
import { deleteChat, type ChatInfo } from '../server/api.ts';
import { lookNow } from '../server/watch.ts';
import { useTexts } from '../texts/index.ts';
import { openNewChat } from './address.ts';
import { Dialog } from './Dialog.tsx';

interface Props {
  chat: ChatInfo;
  /** Whether it is the chat that is shown. */
  isOpen: boolean;
  onClose: () => void;
}

/** Asks before a chat is deleted. */
export function DeleteChat({ chat, isOpen, onClose }: Props) {
  const t = useTexts();
  const [fault, setFault] = useState('');

  const remove = async () => {
    setFault('');
    try {
      await deleteChat(chat.id);
      onClose();
      if (isOpen) openNewChat();
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
    await lookNow();
  };

  return (
    <Dialog title={t.deleteAsk(plain(chat.title) || t.untitled)} onClose={onClose}>
      <p>{t.deleteTold}</p>
      {fault && (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
      <div className="buttons">
        <button type="button" onClick={onClose}>
          {t.cancel}
        </button>
        <button type="button" className="danger" onClick={() => void remove()}>
          {t.delete}
        </button>
      </div>
    </Dialog>
  );
}
