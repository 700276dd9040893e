import { Chat } from '@ai-sdk/angular';
import { Component, InjectionToken, computed, inject, signal } from '@angular/core';
import { getToolName, isToolUIPart } from 'ai';

import { retry, sendAutomaticallyWhen, transport, type StoredChat } from '../chat';
import { runTool } from '../tools';

export const STORED_CHAT = new InjectionToken<StoredChat>('The chat to show');

@Component({
  selector: 'app-chat',
  template: `
    <main [attr.aria-busy]="busy()">
      @for (message of chat.messages; track message.id) {
        <article [attr.aria-label]="message.role">
          @for (part of message.parts; track $index) {
            @if (part.type === 'text') {
              <p>{{ part.text }}</p>
            } @else if (isTool(part)) {
              <p role="group" [attr.aria-label]="nameOf(part)">
                {{ nameOf(part) }} {{ asJson(part.input) }}: {{ part.state }}
                @if (part.state === 'approval-requested') {
                  <button (click)="decide(part.approval.id, true)">Approve</button>
                  <button (click)="decide(part.approval.id, false)">Deny</button>
                }
              </p>
            }
          }
          @if (message.role === 'user') {
            <button (click)="edited.set(message.id)">Edit</button>
          }
        </article>
      }
      @if (chat.error; as error) {
        <div role="alert">
          {{ error.message }}
          <button (click)="retry(chat)">Retry</button>
        </div>
      }
      <form (submit)="send($event, text)">
        <input #text aria-label="Message" />
        <button>Send</button>
      </form>
      <button [disabled]="!busy()" (click)="chat.stop()">Stop</button>
      <button (click)="chat.regenerate()">Regenerate</button>
    </main>
  `,
})
export class ChatComponent {
  private readonly stored = inject(STORED_CHAT);
  readonly chat: Chat = new Chat({
    id: this.stored.id,
    messages: this.stored.messages,
    transport,
    sendAutomaticallyWhen,
    // Not awaited: the stream waits for this callback, and the output for the stream.
    onToolCall: ({ toolCall }) => void runTool(toolCall, this.chat.addToolOutput),
  });
  readonly busy = computed(() => ['submitted', 'streaming'].includes(this.chat.status));
  readonly edited = signal<string | undefined>(undefined);

  readonly isTool = isToolUIPart;
  readonly nameOf = getToolName;
  readonly asJson = JSON.stringify;
  readonly retry = retry;

  constructor() {
    if (this.stored.activeStreamId != null) this.chat.resumeStream();
  }

  decide(id: string, approved: boolean) {
    this.chat.addToolApprovalResponse({ id, approved });
  }

  send(event: Event, input: HTMLInputElement) {
    event.preventDefault();
    this.chat.sendMessage({ text: input.value, messageId: this.edited() });
    input.value = '';
    this.edited.set(undefined);
  }
}
