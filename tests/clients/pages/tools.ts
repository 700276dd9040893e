/** What the browser can do, by the tools' names. */
export const tools: Record<string, (input: any) => unknown> = {
  change_bgm: ({ track }: { track: string }) => {
    document.title = `♪ ${track}`;
    return { playing: track };
  },
  get_location: async () => {
    const { coords } = await new Promise<GeolocationPosition>((found, failed) =>
      navigator.geolocation.getCurrentPosition(found, failed),
    );
    return { latitude: coords.latitude, longitude: coords.longitude };
  },
};

interface ToolCall {
  toolName: string;
  toolCallId: string;
  input: unknown;
}

type ToolOutput = { tool: string; toolCallId: string } & (
  | { output: unknown }
  | { state: 'output-error'; errorText: string }
);

/** Runs a tool of the browser and hands over its output; leaves the server's tools alone. */
export async function runTool(call: ToolCall, addToolOutput: (output: ToolOutput) => unknown) {
  const run = tools[call.toolName];
  if (run === undefined) return;
  const answered = { tool: call.toolName, toolCallId: call.toolCallId };
  try {
    addToolOutput({ ...answered, output: await run(call.input) });
  } catch (error) {
    addToolOutput({ ...answered, state: 'output-error', errorText: String(error) });
  }
}
