import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HeaderReader } from './signature.ts';
import type { Reply } from './store.ts';

/** A request, whatever server it came by. */
export interface Incoming {
  method: string;
  header: HeaderReader;
  /** Read once. @throws TooLarge */
  body: () => Promise<Uint8Array<ArrayBuffer>>;
}

export class TooLarge extends Error {}

type Answer = (incoming: Incoming) => Promise<Reply>;
type Chunks = AsyncIterable<Uint8Array>;

/** The request's body must not have been read before: a signature is of its bytes. */
export function nodeHandler(
  answer: Answer,
  maxBodyBytes: number,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const incoming: Incoming = {
      method: request.method ?? '',
      header: (name) => {
        const value = request.headers[name];
        return Array.isArray(value) ? value.join(', ') : (value ?? null);
      },
      // Without an end to the connection, so that a body that is too large can be answered.
      body: () => wholeBody(request.iterator({ destroyOnReturn: false }) as Chunks, maxBodyBytes),
    };
    void answer(incoming).then(({ status, headers, body }) => {
      // What is left of a body that is too large would be taken for the next request.
      if (status === 413) response.setHeader('connection', 'close');
      response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body);
    });
  };
}

export function fetchHandler(answer: Answer, maxBodyBytes: number): (request: Request) => Promise<Response> {
  return async (request) => {
    const { status, headers, body } = await answer({
      method: request.method,
      header: (name) => request.headers.get(name),
      body: () => wholeBody((request.body ?? []) as unknown as Chunks, maxBodyBytes),
    });
    return new Response(request.method === 'HEAD' ? null : body, { status, headers });
  };
}

async function wholeBody(chunks: Chunks, maxBodyBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > maxBodyBytes) throw new TooLarge();
    parts.push(chunk);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
