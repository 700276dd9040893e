import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  AuiConfig,
  ComposerPrimitive,
  MessagePrimitive,
  ThreadListItemPrimitive,
  ThreadListPrimitive,
  ThreadPrimitive,
  Tools,
  useAui,
  useAuiState,
  useRemoteThreadListRuntime,
  type ToolCallMessagePartProps,
  type Toolkit,
} from '@assistant-ui/react';
import {
  AssistantChatTransport,
  createResumableSessionStorage,
  useAISDKChat,
  useChatRuntime,
} from '@assistant-ui/react-ai-sdk';
import { useMemo } from 'react';
import { z } from 'zod';

import { retry, sendAutomaticallyWhen } from '../chat';
import { runTool, tools } from '../tools';
import { historyOf, threadList } from './threads';

// #region runtime
const toolkit: Toolkit = {
  change_bgm: {
    type: 'frontend',
    description: 'Change the background music',
    parameters: z.object({ track: z.string() }),
    execute: input => tools.change_bgm!(input),
    render: Tool,
  },
};

/** One thread: a chat of the server. */
function useThread() {
  const aui = useAui();
  const { transport, history } = useMemo(() => {
    const getId = () => aui.threadListItem.getState().remoteId;
    return {
      transport: new AssistantChatTransport({
        api: '/api/chat?sdk=7',
        prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => ({
          body: {
            ...body,
            id,
            trigger,
            messageId,
            messages: messages.slice(-1),
            // It edits by a new message in the place of the old one: this is the place.
            ...(trigger === 'submit-message' &&
              messages.at(-1)?.role === 'user' && { parentId: messages.at(-2)?.id ?? null }),
          },
        }),
        resumable: {
          storage: createResumableSessionStorage({ key: getId }),
          resumeApi: id => `/api/chat/${encodeURIComponent(id)}/stream?sdk=7`,
        },
      }),
      history: historyOf(getId),
    };
  }, [aui]);

  const runtime = useChatRuntime({
    transport,
    adapters: { history },
    sendAutomaticallyWhen,
    // It never executes a call that was approved; the others are in the toolkit.
    onToolCall: ({ toolCall }) => {
      if (toolCall.toolName in toolkit) return;
      void runTool(toolCall, answer => {
        const message = runtime.thread.getMessageByIndex(runtime.thread.getState().messages.length - 1);
        const part = message.getMessagePartByToolCallId(toolCall.toolCallId);
        part.addToolResult('output' in answer ? answer.output : { error: answer.errorText });
      });
    },
  });
  return runtime;
}
// #endregion

/** What a part of ai's would say about its state. */
function stateOf({ approval, result, isError }: ToolCallMessagePartProps) {
  if (approval?.approved === false) return result ? 'output-denied' : 'approval-responded';
  if (result !== undefined) return isError ? 'output-error' : 'output-available';
  if (approval === undefined) return 'input-available';
  return approval.approved ? 'approval-responded' : 'approval-requested';
}

function Tool(part: ToolCallMessagePartProps) {
  const state = stateOf(part);
  return (
    <p role="group" aria-label={part.toolName}>
      {part.toolName} {JSON.stringify(part.args)}: {state}
      {state === 'approval-requested' &&
        [true, false].map(approved => (
          <button key={String(approved)} onClick={() => part.respondToApproval({ approved })}>
            {approved ? 'Approve' : 'Deny'}
          </button>
        ))}
    </p>
  );
}

function Message() {
  const role = useAuiState(s => s.message.role);
  return (
    <MessagePrimitive.Root role="article" aria-label={role}>
      <MessagePrimitive.Parts>
        {({ part }) => {
          if (part.type === 'text') return <p>{part.text}</p>;
          return part.type === 'tool-call' ? <Tool {...part} /> : null;
        }}
      </MessagePrimitive.Parts>
      {role === 'user' ? (
        <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
      ) : (
        <ActionBarPrimitive.Reload>Regenerate</ActionBarPrimitive.Reload>
      )}
    </MessagePrimitive.Root>
  );
}

function EditedMessage() {
  return (
    <ComposerPrimitive.Root>
      <ComposerPrimitive.Input aria-label="Edited message" />
      <ComposerPrimitive.Send>Save</ComposerPrimitive.Send>
    </ComposerPrimitive.Root>
  );
}

function Thread() {
  const chat = useAISDKChat();
  const busy = useAuiState(s => s.thread.isRunning);
  return (
    <ThreadPrimitive.Root role="main" aria-busy={busy}>
      <ThreadPrimitive.Messages>
        {({ message }) => (message.composer.isEditing ? <EditedMessage /> : <Message />)}
      </ThreadPrimitive.Messages>
      {chat?.error && (
        <div role="alert">
          {chat.error.message}
          <button onClick={() => retry(chat)}>Retry</button>
        </div>
      )}
      <ComposerPrimitive.Root>
        <ComposerPrimitive.Input aria-label="Message" />
        <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
      </ComposerPrimitive.Root>
      <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
    </ThreadPrimitive.Root>
  );
}

function ThreadItem() {
  const aui = useAui();
  return (
    <ThreadListItemPrimitive.Root role="listitem">
      <ThreadListItemPrimitive.Trigger>
        <ThreadListItemPrimitive.Title fallback="New chat" />
      </ThreadListItemPrimitive.Trigger>
      <button onClick={() => aui.threadListItem.rename(prompt('Title') ?? '')}>Rename</button>
      <ThreadListItemPrimitive.Archive>Archive</ThreadListItemPrimitive.Archive>
      <ThreadListItemPrimitive.Unarchive>Unarchive</ThreadListItemPrimitive.Unarchive>
      <ThreadListItemPrimitive.Delete>Delete</ThreadListItemPrimitive.Delete>
    </ThreadListItemPrimitive.Root>
  );
}

// #region provider
interface AssistantProps {
  threadId: string | undefined;
  onThreadIdChange: (id: string | undefined) => void;
}

export function Assistant({ threadId, onThreadIdChange }: AssistantProps) {
  const runtime = useRemoteThreadListRuntime({
    adapter: threadList,
    runtimeHook: useThread,
    threadId,
    onThreadIdChange,
  });
  return (
    <AssistantRuntimeProvider runtime={runtime} config={AuiConfig({ tools: Tools({ toolkit }) })}>
      <ThreadListPrimitive.Root>
        <ThreadListPrimitive.New>New chat</ThreadListPrimitive.New>
        <div role="list" aria-label="Chats">
          <ThreadListPrimitive.Items>{() => <ThreadItem />}</ThreadListPrimitive.Items>
        </div>
        <div role="list" aria-label="Archived">
          <ThreadListPrimitive.Items archived>{() => <ThreadItem />}</ThreadListPrimitive.Items>
        </div>
        <ThreadListPrimitive.LoadMore>More</ThreadListPrimitive.LoadMore>
      </ThreadListPrimitive.Root>
      <Thread />
    </AssistantRuntimeProvider>
  );
}
// #endregion
