// app/api/[...path]/route.ts
const SERVER = process.env.AGENT_SERVER ?? 'http://127.0.0.1:8000';
const PASSED_ON = ['accept', 'content-type', 'cookie', 'authorization'];

/** Passes a request on to the agent's server, and the answer back piece by piece. */
async function forward(request: Request) {
  const { pathname, search } = new URL(request.url);
  const headers = new Headers();
  for (const name of PASSED_ON) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const answer = await fetch(SERVER + pathname + search, {
    method: request.method,
    headers,
    body: request.method === 'GET' ? undefined : await request.text(),
    // Whoever hangs up here hangs up there.
    signal: request.signal,
  });
  const answered = new Headers(answer.headers);
  // What fetch unpacked is packed no more.
  answered.delete('content-encoding');
  answered.delete('content-length');
  return new Response(answer.body, { status: answer.status, headers: answered });
}

export { forward as DELETE, forward as GET, forward as PATCH, forward as POST };
