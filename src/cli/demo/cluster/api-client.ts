import { reasonOf } from '../../../runtime/reason.ts';

export interface ClientAnswer {
  status: number;
  body: unknown;
}

/** Calls the API of the demo's instances, any of them: one may die at any moment. */
export interface ApiClient {
  /** The first answer that is not 503, if any is. @throws where none answers */
  ask(method: string, path: string, body?: unknown): Promise<ClientAnswer>;
  /** The body of a 2xx. @throws for every other answer, and where none answers */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
}

const ANSWERS_WITHIN_MS = 20_000;
/** The instance is short of time, or has lost the database: another may do better. All that the demo calls may be called again. */
const UNAVAILABLE = 503;

export function createApiClient(readyUrls: () => string[]): ApiClient {
  let turn = 0;

  async function ask(method: string, path: string, body?: unknown): Promise<ClientAnswer> {
    const urls = readyUrls();
    turn += 1;
    let unavailable: ClientAnswer | null = null;
    let failed: unknown = new Error('no instance is ready');
    for (let tried = 0; tried < urls.length; tried += 1) {
      try {
        const answer = await send(`${urls[(turn + tried) % urls.length] ?? ''}/api/v1/${path}`, method, body);
        if (answer.status !== UNAVAILABLE) return answer;
        unavailable = answer;
      } catch (error) {
        failed = error;
      }
    }
    if (unavailable !== null) return unavailable;
    throw failed;
  }

  return {
    ask,
    call: async (method, path, body) => {
      const answer = await ask(method, path, body);
      if (answer.status >= 200 && answer.status < 300) return answer.body;
      throw new Error(`${method} ${path} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    },
  };
}

export async function answersReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) });
    await response.text();
    return response.status === 200;
  } catch {
    return false;
  }
}

async function send(url: string, method: string, body: unknown): Promise<ClientAnswer> {
  const response = await fetch(url, {
    method,
    signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  try {
    return { status: response.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
  } catch (error) {
    throw new Error(`${url} answered what is no JSON (${reasonOf(error)})`, { cause: error });
  }
}
