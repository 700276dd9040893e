import { getToolName } from 'ai';

import type { ToolProps } from '../react/Messages';
import {
  Confirmation,
  ConfirmationAccepted,
  ConfirmationAction,
  ConfirmationActions,
  ConfirmationRejected,
  ConfirmationRequest,
} from './confirmation';

export function Tool({ part, decide }: ToolProps) {
  return (
    <div role="group" aria-label={getToolName(part)}>
      {getToolName(part)} {JSON.stringify(part.input)}: {part.state}
      <Confirmation approval={part.approval} state={part.state}>
        <ConfirmationRequest>May it?</ConfirmationRequest>
        <ConfirmationAccepted>You approved this.</ConfirmationAccepted>
        <ConfirmationRejected>You rejected this.</ConfirmationRejected>
        <ConfirmationActions>
          <ConfirmationAction onClick={() => decide(true)}>Approve</ConfirmationAction>
          <ConfirmationAction onClick={() => decide(false)}>Deny</ConfirmationAction>
        </ConfirmationActions>
      </Confirmation>
    </div>
  );
}
