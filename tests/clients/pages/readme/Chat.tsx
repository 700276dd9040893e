import { useChat } from '@ai-sdk/react';
import { isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';

export function Chat() {
  const { messages, sendMessage, addToolApprovalResponse, error, regenerate } = useChat({
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const decide = (id: string, approved: boolean) => () => addToolApprovalResponse({ id, approved });
  return <>
    {messages.flatMap(({ id, parts }) => parts.map((part, index) => <p key={`${id}-${index}`}>
      {part.type === 'text' && part.text}
      {isToolUIPart(part) && `${part.type} ${JSON.stringify(part.input)}: ${part.state}`}
      {isToolUIPart(part) && part.state === 'approval-requested' && <>
        <button onClick={decide(part.approval.id, true)}>Approve</button>
        <button onClick={decide(part.approval.id, false)}>Deny</button>
      </>}
    </p>))}
    {error && <p>{error.message} <button onClick={() => regenerate()}>Retry</button></p>}
    <button onClick={() => sendMessage({ text: 'Pay 50 dollars to Hanako.' })}>Pay</button>
  </>;
}
