/**
 * Stands for the Confirmation of AI Elements, which is copied out of a registry and is in no package.
 * It has the same parts, which show themselves by the same two properties of a tool part: by its
 * state and by what its approval says.
 */
import type { DynamicToolUIPart, ToolUIPart } from 'ai';
import { createContext, use, type ComponentProps, type ReactNode } from 'react';

type Part = ToolUIPart | DynamicToolUIPart;
type Stage = 'requested' | 'accepted' | 'rejected' | 'unknown';

const DECIDED: readonly Part['state'][] = ['approval-responded', 'output-available', 'output-denied'];

function stageOf(state: Part['state'], approved: boolean | undefined): Stage {
  if (state === 'approval-requested') return 'requested';
  if (!DECIDED.includes(state) || approved === undefined) return 'unknown';
  return approved ? 'accepted' : 'rejected';
}

const CurrentStage = createContext<Stage>('unknown');

const shownWhen = (stage: Stage) =>
  function Shown({ children }: { children: ReactNode }) {
    return use(CurrentStage) === stage ? children : null;
  };

interface ConfirmationProps {
  state: Part['state'];
  approval: Part['approval'];
  children: ReactNode;
}

/** A box as soon as there is an approval; what is in it depends on the verdict. */
export function Confirmation({ state, approval, children }: ConfirmationProps) {
  if (!approval || state.startsWith('input-')) return null;
  return (
    <div role="status">
      <CurrentStage value={stageOf(state, approval.approved)}>{children}</CurrentStage>
    </div>
  );
}

export const ConfirmationRequest = shownWhen('requested');
export const ConfirmationActions = shownWhen('requested');
export const ConfirmationAccepted = shownWhen('accepted');
export const ConfirmationRejected = shownWhen('rejected');
export const ConfirmationAction = (props: ComponentProps<'button'>) => <button {...props} />;
