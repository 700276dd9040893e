// The real fetch, watched: it counts, keeps the bodies and the chunks, and ends endless resubmission.

const MAX_POSTS = 12;

export class Wire {
  posts = []; // {body, status, chunks}, one per POST, in order; status is null without a response
  resumes = []; // {status, chunks}, one per GET of the resume address
  latest = undefined; // the newest of both
  isEndless = false; // the chat tried to send more than MAX_POSTS times
  #onChange;

  constructor(onChange) {
    this.#onChange = onChange;
  }

  fetch = async (url, init) => {
    const exchange = { status: null, chunks: [] };
    if (init.method === 'POST') {
      if (this.posts.length >= MAX_POSTS) {
        this.isEndless = true;
        throw new Error('endless resubmission');
      }
      this.posts.push(Object.assign(exchange, { body: JSON.parse(init.body) }));
    } else {
      this.resumes.push(exchange);
    }
    this.latest = exchange;
    this.#onChange();

    const response = await fetch(url, init);
    exchange.status = response.status;
    return response.ok && response.body ? watch(response, exchange.chunks) : response;
  };
}

/** Passes a response on unchanged and collects its chunks; cancelling it still closes the socket. */
function watch(response, chunks) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  const note = bytes => {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data:')) continue;
      try {
        chunks.push(JSON.parse(line.slice('data:'.length)));
      } catch {
        // `[DONE]`, or something that is not JSON, which the chat itself will complain about.
      }
    }
  };
  // Not `tee()`: it would keep the socket open after the chat has cancelled its branch.
  const body = new ReadableStream(
    {
      async pull(controller) {
        const { value, done } = await reader.read();
        if (done) return controller.close();
        note(value);
        controller.enqueue(value);
      },
      cancel: reason => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
