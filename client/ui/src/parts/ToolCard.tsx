// What became of a call: its state, what it was called with, what came of it, and who decided.

import { ChevronRight, CircleAlert, CircleCheck, CircleSlash, CircleHelp, LoaderCircle } from 'lucide-react';
import { useState } from 'react';

import { Brief, Value } from '../approvals/Value.tsx';
import { names, visible } from '../approvals/visible.ts';
import { toolNameOf, type ToolPart } from '../chat/asked.ts';
import type { Card } from '../server/api.ts';
import { useTexts } from '../texts/index.ts';
import { stateOf, type ToolState } from './toolState.ts';

const ICONS: Record<ToolState, typeof CircleAlert> = {
  preparing: LoaderCircle,
  running: LoaderCircle,
  waiting: LoaderCircle,
  approved: LoaderCircle,
  done: CircleCheck,
  failed: CircleAlert,
  denied: CircleSlash,
  expired: CircleSlash,
  cancelled: CircleSlash,
  unknown: CircleHelp,
};

interface Props {
  part: ToolPart;
  card: Card | undefined;
  /** Whether somebody else than the tool is waited for. */
  isWaiting: boolean;
}

export function ToolCard({ part, card, isWaiting }: Props) {
  const t = useTexts();
  const state = stateOf(part, card, isWaiting);
  const Icon = ICONS[state];
  const isTurning = Icon === LoaderCircle && state !== 'waiting';
  const isBad = state === 'failed' || state === 'unknown';
  // Undefined until the person opens or closes it. What is closed is not drawn: it may be long.
  const [isOpened, setOpened] = useState<boolean>();
  const isOpen = isOpened ?? isBad;
  return (
    <details
      className={`tool ${state}`}
      open={isOpen}
      onToggle={({ currentTarget }) => {
        if (currentTarget.open !== isOpen) setOpened(currentTarget.open);
      }}
    >
      <summary>
        <ChevronRight aria-hidden className="turner" />
        <code>{visible(toolNameOf(part))}</code>
        <Brief value={part.input} />
        <span className={`state ${state}`}>
          <Icon aria-hidden className={isTurning ? 'turning' : undefined} />
          {t.toolStates[state]}
        </span>
      </summary>
      {isOpen && (
        <>
          <h4>{t.input}</h4>
          <Value value={part.input} />
          {part.state === 'output-available' && (
            <>
              <h4>{t.output}</h4>
              <Value value={part.output} />
            </>
          )}
          {part.state === 'output-error' && <p className="fault">{visible(part.errorText)}</p>}
          {state === 'unknown' && <p className="fault">{t.outcomeUnknown}</p>}
          <Decided part={part} card={card} />
        </>
      )}
    </details>
  );
}

/** Tells who decided, how, and why. */
function Decided({ part, card }: { part: ToolPart; card: Card | undefined }) {
  const t = useTexts();
  const reason = card?.reason ?? part.approval?.reason;
  if (card === undefined && !reason) return null;
  const { approvedBy, automatic, decidedBy, editedBy, editedInput, resolved, status } = card ?? {};
  return (
    <div className="decided">
      {editedInput && (
        <>
          <h4>{t.ranWith(visible(editedBy ?? t.somebody))}</h4>
          <Value value={editedInput} />
        </>
      )}
      {reason && (
        <p>
          {t.reasonTold}: {visible(reason)}
        </p>
      )}
      {automatic && decidedBy && <p>{t.automatically(visible(decidedBy))}</p>}
      {approvedBy && <p>{t.approvedBy(names(approvedBy, t.then))}</p>}
      {!automatic && !approvedBy && decidedBy && <p>{t.decidedBy(visible(decidedBy))}</p>}
      {resolved && status && (
        <p>{t.resolvedBy(visible(resolved.by ?? t.theTool), t.toolStates[status as ToolState] ?? status)}</p>
      )}
    </div>
  );
}
