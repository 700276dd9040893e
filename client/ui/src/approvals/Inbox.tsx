import { useEffect, useState } from 'react';

import { addressOf, newId } from '../app/address.ts';
import { Dialog } from '../app/Dialog.tsx';
import { currentPrefs } from '../app/prefs.ts';
import { recorder } from '../inspector/tape.ts';
import { chat, decide, type Approval, type ChatInfo, type Verdict } from '../server/api.ts';
import { infoOf, lookNow, noteChat, useSeen } from '../server/watch.ts';
import { useTexts, type Texts } from '../texts/index.ts';
import { ApprovalCard } from './ApprovalCard.tsx';
import { plain, visible } from './visible.ts';

/** Finds out about chats that are in no list: old or archived ones, and those of others. */
function useChatsOf(pending: Approval[]): void {
  const seen = useSeen();
  const unknown = pending.find(({ chatId }) => infoOf(seen, chatId) === undefined)?.chatId;
  useEffect(() => {
    if (unknown === undefined) return;
    // One that cannot be asked for now is asked for again with the next look.
    chat(unknown, currentPrefs().profile).then(
      found => noteChat(unknown, found),
      () => {},
    );
  }, [unknown, seen.looks]);
}

interface LinkProps {
  /** Null: it is somebody else's chat; undefined: that is not known yet. */
  info: ChatInfo | null | undefined;
  owner: string;
  onOpen: () => void;
}

function ChatLink({ info, owner, onOpen }: LinkProps) {
  const t = useTexts();
  if (!info) return t.askedBy(visible(owner));
  return (
    <a href={addressOf(info.id)} onClick={onOpen}>
      {t.openChat}: {plain(info.title) || t.untitled}
    </a>
  );
}

/** Everything that waits for a decision, in all chats, as it comes and goes. */
export function Inbox({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const seen = useSeen();
  const { pending = [] } = seen;
  useChatsOf(pending);
  const [told, setTold] = useState('');

  const settle = async (approval: Approval, verdict: Verdict) => {
    setTold('');
    recorder.in({ chat: approval.chatId }, { type: 'decision', data: { id: approval.id, ...verdict } });
    const now = await decide(approval.id, verdict, newId('decision'));
    const isOurs = now.status === 'pending' || isApproved(now) === verdict.approved;
    if (!isOurs) setTold(t.settledElsewhere(statusText(now, t)));
    await lookNow();
  };

  return (
    <Dialog title={t.inbox} about={t.inboxTold} className="inbox" onClose={onClose}>
      {told && (
        <p className="notice info" role="status">
          {told}
        </p>
      )}
      {pending.length === 0 && <p className="empty">{t.inboxEmpty}</p>}
      <ul className="waiting-approvals" aria-live="polite">
        {pending.map(approval => (
          <li key={approval.id}>
            <ApprovalCard
              approvalId={approval.id}
              toolName={approval.toolName}
              input={approval.input}
              card={approval}
              decide={verdict => settle(approval, verdict)}
            />
            <p className="about">
              <ChatLink info={infoOf(seen, approval.chatId)} owner={approval.owner} onOpen={onClose} />
            </p>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

const isApproved = ({ status }: Approval): boolean => !['denied', 'expired', 'cancelled'].includes(status);

const statusText = ({ status }: Approval, t: Texts): string =>
  status in t.toolStates ? t.toolStates[status as keyof Texts['toolStates']] : status;
