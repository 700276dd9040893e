import { useChat } from '@ai-sdk/react'
import { isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'

export default function App() {
  const { messages, sendMessage, addToolApprovalResponse, error, regenerate } = useChat({
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const decide = (id: string, approved: boolean) => () => addToolApprovalResponse({ id, approved })
  return (
    <main>
      {messages.flatMap(message => message.parts.map((part, index) => (
        <div key={`${message.id}-${index}`}>
          {part.type === 'text' && `${message.role}: ${part.text}`}
          {isToolUIPart(part) && `${part.type} ${JSON.stringify(part.input)}: ${part.state}`}
          {isToolUIPart(part) && part.state === 'approval-requested' && <>
            <button onClick={decide(part.approval.id, true)}>Approve</button>
            <button onClick={decide(part.approval.id, false)}>Deny</button>
          </>}
        </div>
      )))}
      {error && <p>{error.message} <button onClick={() => regenerate()}>Retry</button></p>}
      <form action={form => sendMessage({ text: String(form.get('text')) })}>
        <input name="text" placeholder="Pay 50 dollars to Hanako." />
      </form>
    </main>
  )
}
