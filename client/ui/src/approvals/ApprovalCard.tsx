// A call that waits for a decision. Tool and arguments are shown as data only: no Markdown, no HTML, and no
// word of the model's, which might talk a person into it.

import { Pencil, ShieldAlert } from 'lucide-react';
import { useEffect, useId, useRef, useState } from 'react';

import { approval as loadApproval, type Card, type Schema, type Verdict } from '../server/api.ts';
import { useTexts } from '../texts/index.ts';
import { Countdown } from './Countdown.tsx';
import { EditForm } from './EditForm.tsx';
import { Value } from './Value.tsx';
import { names, visible } from './visible.ts';

interface Props {
  approvalId: string;
  toolName: string;
  input: unknown;
  hint?: string | undefined;
  card: Partial<Card> | undefined;
  /** Where the focus may go by itself: to the safe answer. */
  takesFocus?: boolean;
  decide: (verdict: Verdict) => Promise<void>;
}

export function ApprovalCard({ approvalId, toolName, input, hint, card = {}, takesFocus, decide }: Props) {
  const t = useTexts();
  const heading = useId();
  const deny = useRef<HTMLButtonElement>(null);
  const section = useRef<HTMLElement>(null);
  const [reason, setReason] = useState('');
  const [isSending, setSending] = useState(false);
  const [fault, setFault] = useState('');
  // The schema of the arguments, while they are being edited.
  const [schema, setSchema] = useState<Schema>();

  useEffect(() => {
    if (!takesFocus) return;
    section.current?.scrollIntoView({ block: 'nearest' });
    // Never away from somebody who writes or decides another call; nor from a key that is held to talk, which
    // would press the button that gets the focus.
    const at = document.activeElement;
    const writes = at instanceof HTMLTextAreaElement ? at.value !== '' : at instanceof HTMLInputElement;
    if (!writes && !at?.closest('.approval, .talk')) deny.current?.focus({ preventScroll: true });
  }, [takesFocus]);

  const send = async (verdict: Verdict) => {
    // A second click finds the buttons off; this is for a click that was already on its way.
    if (isSending) return;
    setSending(true);
    setFault('');
    try {
      await decide({ ...verdict, ...(reason && { reason }) });
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    } finally {
      setSending(false);
    }
  };
  const edit = async () => {
    try {
      setSchema((await loadApproval(approvalId)).inputSchema ?? {});
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
  };
  const shownInput = card.editedInput ?? input;
  const hash = card.editedArgumentsHash === undefined ? {} : { argumentsHash: card.editedArgumentsHash };
  const told = card.hint || hint;

  return (
    <section className="approval" aria-labelledby={heading} ref={section}>
      <header>
        <ShieldAlert aria-hidden />
        <div>
          <h3 id={heading}>{visible(card.title || toolName)}</h3>
          <p className="about">
            {t.needsApproval} · {t.tool} <code>{visible(toolName)}</code>
          </p>
        </div>
        {card.risk && (
          <span className={`risk ${/^\w+$/.test(card.risk) ? card.risk : ''}`}>{t.risk(visible(card.risk))}</span>
        )}
      </header>
      {told && <p>{visible(told)}</p>}
      {card.step && <StepLine card={card} />}
      {schema === undefined ? (
        <>
          <Value value={input} />
          {card.editedInput && (
            <>
              <h4>{t.changedBy(visible(card.editedBy ?? t.somebody))}</h4>
              <Value value={card.editedInput} />
            </>
          )}
          <input
            className="reason"
            type="text"
            maxLength={500}
            value={reason}
            placeholder={t.reason}
            aria-label={t.reason}
            onChange={event => setReason(event.target.value)}
          />
          <div className="buttons">
            <button
              type="button"
              className="deny"
              ref={deny}
              disabled={isSending}
              onClick={() => void send({ approved: false })}
            >
              {t.deny}
            </button>
            <button
              type="button"
              className="approve"
              disabled={isSending}
              onClick={() => void send({ approved: true, ...hash })}
            >
              {t.approve}
            </button>
            {card.rememberable && (
              <button
                type="button"
                className="quiet"
                title={t.rememberTold}
                disabled={isSending}
                onClick={() => void send({ approved: true, remember: true, ...hash })}
              >
                {t.remember}
              </button>
            )}
            {card.editable && (
              <button type="button" className="quiet" disabled={isSending} onClick={() => void edit()}>
                <Pencil aria-hidden /> {t.editArguments}
              </button>
            )}
            {card.expiresAt && <Countdown until={card.expiresAt} />}
          </div>
        </>
      ) : (
        <EditForm
          input={shownInput as Record<string, unknown>}
          schema={schema}
          isDisabled={isSending}
          onCancel={() => setSchema(undefined)}
          onApprove={edited => void send({ approved: true, input: edited })}
        />
      )}
      {isSending && (
        <p className="about" role="status">
          {t.sending}
        </p>
      )}
      {fault && (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
    </section>
  );
}

/** Tells which of several approvals is awaited, and whose. */
function StepLine({ card: { step, approvedBy } }: { card: Partial<Card> }) {
  const t = useTexts();
  if (step === undefined) return null;
  const details = [step.by && t.stepBy(names(step.by, t.or)), step.fourEyes && t.fourEyes].filter(Boolean);
  return (
    <p className="step">
      <strong>{t.step(step.n, step.of, visible(step.name))}</strong>
      {details.length > 0 && ` (${details.join(', ')})`}
      {approvedBy && <span className="about"> {t.approvedSoFar(names(approvedBy, ', '))}</span>}
    </p>
  );
}
