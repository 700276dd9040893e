// The real fetch, watched: it counts, keeps the bodies and the chunks, and ends endless resubmission.

const MAX_POSTS = 12;

export class Wire {
  posts = []; // {body, status, chunks}, one per POST, in order; status is null without a response
  resumes = []; // {status, chunks}, one per GET of the resume address
  latest = undefined; // the newest of both
  frames = []; // what came over a WebSocket, in order
  isEndless = false; // the chat tried to send more than MAX_POSTS times
  #onChange;

  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** Notes that the chat sends, and returns where to note what becomes of it. */
  post(body) {
    if (this.posts.length >= MAX_POSTS) {
      this.isEndless = true;
      throw new Error('endless resubmission');
    }
    return this.#begin(this.posts, { body, status: null, chunks: [] });
  }

  /** Notes that the chat wants to resume. */
  resume() {
    return this.#begin(this.resumes, { status: null, chunks: [] });
  }

  #begin(exchanges, exchange) {
    exchanges.push(exchange);
    this.latest = exchange;
    this.#onChange();
    return exchange;
  }

  fetch = async (url, init) => {
    const exchange = init.method === 'POST' ? this.post(JSON.parse(init.body)) : this.resume();
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
