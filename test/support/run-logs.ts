import type { Api } from '../api/api.ts';
import { call } from './calls.ts';

/** What of an API the logs of runs need. */
type Base = Pick<Api, 'url'>;
type Headers = Record<string, string>;

export interface Claimed {
  id: string;
  attempt: number;
}

/** A run of the queue `work`, claimed by `w-1`. */
export async function claimedRun(api: Base, more: object = {}, headers: Headers = {}): Promise<Claimed> {
  const run = await post(api, 'runs', { target: { type: 'pull', queue: 'work' }, ...more }, headers);
  return claimAgain(api, run['id'] as string, headers);
}

/** Of the same run, whose turn it must be. */
export async function claimAgain(api: Base, id: string, headers: Headers = {}): Promise<Claimed> {
  const asked = { workerId: 'w-1', leaseSeconds: 600, waitSeconds: 60 };
  const { items } = await post(api, 'queues/work/claim', asked, headers);
  const [run] = items as { id: string; attempts: number }[];
  if (run?.id !== id) throw new Error(`another run was claimed: ${run?.id}`);
  return { id, attempt: run.attempts };
}

async function post(api: Base, path: string, body: object, headers: Headers): Promise<Record<string, unknown>> {
  const answer = await call(`${api.url}/api/v1/${path}`, 'POST', { body, headers });
  if (answer.status >= 300) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
  return answer.body as Record<string, unknown>;
}

/** Ends it. */
export async function complete(api: Base, { id, attempt }: Claimed, headers: Headers = {}): Promise<void> {
  await post(api, `runs/${id}/complete`, { status: 'succeeded', attempt, workerId: 'w-1' }, headers);
}

/** The answer to an append: its status, and the next offset or the problem. */
export async function append(
  api: Base,
  { id, attempt }: Claimed,
  bytes: string | Uint8Array,
  { offset = 0, headers = {}, more = '' }: { offset?: number; headers?: Headers; more?: string } = {},
) {
  const url = `${api.url}/api/v1/runs/${id}/log?attempt=${attempt}&offset=${offset}${more}`;
  const {
    status,
    body,
    headers: answered,
  } = await call(url, 'POST', {
    body: bytes,
    headers: { 'content-type': 'text/plain', ...headers },
  });
  const { offset: next, detail } = body as { offset?: number; detail?: string };
  return { status, next, detail, retryAfter: answered.get('retry-after') };
}

interface Part {
  status: number;
  bytes: Buffer;
  next: number;
  skipped: number;
  isComplete: boolean;
  attempt: number;
}

export async function readPart(api: Base, id: string, query = '', headers: Headers = {}): Promise<Part> {
  const response = await fetch(`${api.url}/api/v1/runs/${id}/log?${query}`, { headers });
  const said = (name: string) => response.headers.get(`firelock-log-${name}`);
  return {
    status: response.status,
    bytes: Buffer.from(await response.arrayBuffer()),
    next: Number(said('offset')),
    skipped: Number(said('skipped')),
    isComplete: said('complete') === 'true',
    attempt: Number(said('attempt')),
  };
}

/** All parts until there is nothing more, as a reader sees them: what it has, and how many bytes were left out before each part. */
export async function readLog(api: Base, { id, attempt }: Claimed, from = 0) {
  const parts: Part[] = [];
  for (let offset = from; ;) {
    const part = await readPart(api, id, `attempt=${attempt}&offset=${offset}`);
    if (part.next === offset) return { parts, bytes: Buffer.concat(parts.map(({ bytes }) => bytes)), next: offset };
    parts.push(part);
    offset = part.next;
  }
}
