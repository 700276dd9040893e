import { useState } from 'react';

import { addressOf, newId } from '../app/address.ts';
import { Dialog } from '../app/Dialog.tsx';
import { recorder } from '../inspector/tape.ts';
import { decide, type Approval, type Verdict } from '../server/api.ts';
import { lookNow, useSeen } from '../server/watch.ts';
import { useTexts, type Texts } from '../texts/index.ts';
import { ApprovalCard } from './ApprovalCard.tsx';
import { plain, visible } from './visible.ts';

/** Everything that waits for a decision, in all chats, as it comes and goes. */
export function Inbox({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const { chats, pending = [] } = useSeen();
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
              {chats?.some(({ id }) => id === approval.chatId) ? (
                <a href={addressOf(approval.chatId)} onClick={onClose}>
                  {t.openChat}: {plain(chats.find(({ id }) => id === approval.chatId)?.title ?? '') || t.untitled}
                </a>
              ) : (
                t.askedBy(visible(approval.owner))
              )}
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
