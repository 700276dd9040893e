import type { ChatStatus, UIMessage } from 'ai';

import { socketFor, type AnswerTransport } from './answering.js';
import {
  confirmedCallOf,
  isConfirmation,
  isSettled,
  isYes,
  toolNameOf,
  toolPartsOf,
  type ToolPart,
} from './toolParts.js';

/** Runs a call; what it returns is the output, what it throws is told to the model. */
export type BrowserTool = (input: any, call: { toolCallId: string }) => unknown;

export interface BrowserToolsOptions {
  /** By the name that the agent knows them by. */
  tools: Record<string, BrowserTool>;
  /** How outputs get to the server; a function is asked for each, as `useChat` gives new ones. */
  transport: AnswerTransport | (() => AnswerTransport);
}

/** What came of a call. */
type Outcome = { output: unknown } | { errorText: string };

/** A call that was begun here. */
interface Run {
  /** Undefined while it runs. */
  outcome: Outcome | undefined;
  /** Whether the messages showed its end; a call that waits again then was told anew by the server. */
  wasSeen: boolean;
}

/** Runs the tools of an agent that only a browser can run, each call once. */
export class BrowserTools {
  readonly #options: BrowserToolsOptions;
  readonly #runs = new Map<string, Run>();
  // Calls for which the socket was asked whether they may run.
  readonly #asked = new Set<string>();

  constructor(options: BrowserToolsOptions) {
    this.#options = options;
  }

  /** The names of the tools. */
  get names(): string[] {
    return Object.keys(this.#options.tools);
  }

  /** Whether a call was run here. */
  hasRun(toolCallId: string): boolean {
    return this.#runs.has(toolCallId);
  }

  /**
   * Runs what waits for the browser in the last message. Call it on every change of a chat, with the
   * chat's status: while a reply streams, a call may turn out to need an approval.
   */
  look(messages: UIMessage[], status: ChatStatus): void {
    const last = messages.at(-1);
    if (last?.role !== 'assistant') return;
    const parts = toolPartsOf(last);
    for (const part of parts) {
      const run = this.#options.tools[toolNameOf(part)];
      // The socket may know the whole call already, but this part has no input to run it with.
      if (part.state === 'input-streaming') continue;
      if (run !== undefined) this.#consider(part, parts, { run, status });
    }
  }

  #consider(
    part: ToolPart,
    parts: ToolPart[],
    { run, status }: { run: BrowserTool; status: ChatStatus },
  ): void {
    const known = this.#runs.get(part.toolCallId);
    if (isSettled(part)) {
      if (known !== undefined) known.wasSeen = true;
    } else if (known !== undefined) {
      // Not run again: what came of it is known.
      if (known.wasSeen && known.outcome !== undefined) this.#deliver(part, known, known.outcome);
    } else if (!this.#leaveToSocket(part, run) && isLetRun(part, parts, status)) {
      void this.#run(part, run);
    }
  }

  // The socket knows better than the messages: they show an approval before the server has it.
  #leaveToSocket(part: ToolPart, run: BrowserTool): boolean {
    const { toolCallId } = part;
    if (this.#asked.has(toolCallId)) return true;
    const { websocket, chatId = '' } = this.#transport;
    const asked = websocket?.mayRun?.(chatId, toolCallId);
    if (asked === undefined) return false;
    this.#asked.add(toolCallId);
    void asked.then(may => {
      this.#asked.delete(toolCallId);
      if (may && !this.#runs.has(toolCallId)) void this.#run(part, run);
    });
    return true;
  }

  async #run(part: ToolPart, run: BrowserTool): Promise<void> {
    const { toolCallId, input } = part;
    const known: Run = { outcome: undefined, wasSeen: false };
    this.#runs.set(toolCallId, known);
    try {
      // JSON has no word for undefined.
      known.outcome = { output: (await run(input, { toolCallId })) ?? null };
    } catch (error) {
      known.outcome = { errorText: error instanceof Error ? error.message : String(error) };
    }
    this.#deliver(part, known, known.outcome);
  }

  #deliver(part: ToolPart, known: Run, outcome: Outcome): void {
    known.wasSeen = false;
    const { toolCallId } = part;
    const tool = toolNameOf(part);
    const transport = this.#transport;
    void socketFor(transport, toolCallId)?.sendToolResult({
      chatId: transport.chatId ?? '',
      toolCallId,
      toolName: tool,
      ...('output' in outcome ? { result: outcome.output } : outcome),
    });
    void transport.addToolOutput?.(
      'output' in outcome
        ? { tool, toolCallId, output: outcome.output }
        : { tool, toolCallId, state: 'output-error', errorText: outcome.errorText },
    );
  }

  get #transport(): AnswerTransport {
    const { transport } = this.#options;
    return typeof transport === 'function' ? transport() : transport;
  }
}

/** Whether the messages say that the browser is to run a call now. */
function isLetRun(part: ToolPart, parts: ToolPart[], status: ChatStatus): boolean {
  if (part.state === 'approval-responded') return part.approval?.approved === true;
  if (part.state !== 'input-available') return false;
  const question = parts.find(
    each => isConfirmation(each) && confirmedCallOf(each.input) === part.toolCallId,
  );
  if (question !== undefined) {
    return question.state === 'output-available' && isYes(question.output);
  }
  // What was approved has its input sent once more; of what has no approval, the question may be on its way.
  if (part.approval !== undefined) return part.approval.approved === true;
  const isStreaming = status === 'streaming' || status === 'submitted';
  return !isStreaming && part.providerExecuted !== true;
}
