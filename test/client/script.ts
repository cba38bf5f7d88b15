import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { serveHttp, withBody } from '../support/loopback.ts';

/** What a vector says that the work does; clients/README.md has the list. */
export interface Action {
  log?: string;
  times?: number;
  progress?: number;
  until?: number;
  wait?: 'cancelled';
  stop?: true;
  later?: number;
  message?: string;
  refuse?: string;
  fail?: string;
  return?: unknown;
}

export interface Sent {
  method: string;
  headers: Record<string, string>;
  body: string;
}

interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

/** A request that a worker has to make, and what it is answered. */
interface Step {
  path: string;
  query?: Record<string, string>;
  body?: unknown;
  text?: string;
  times?: number;
  answer: Answer | 'close' | 'hold' | 'endless';
  stop?: true;
  mayRepeat?: boolean;
  together?: true;
  optional?: true;
}

interface Script {
  name: string;
  options?: object;
  steps: Step[];
  ends?: string;
}

/** A request that a receiver gets, and what it answers. */
interface Received {
  restart?: true;
  request?: string;
  do?: Action[];
  status?: number;
  worked?: number;
  body?: unknown;
  retryAfter?: string;
}

/** A request that comes, or one that the receiver makes: `worked` says how often work was done until then. */
export type CallbackStep = Received | (Step & Pick<Received, 'worked'>);

interface Vectors {
  now: number;
  secrets: string[];
  signatures: {
    name: string;
    isRight: boolean;
    secrets: string[];
    headers: Record<string, string>;
    body: string;
  }[];
  badSecrets: string[];
  requests: Record<string, Sent>;
  receivers: { name: string; steps: Received[] }[];
  callbacks: { name: string; heartbeatSeconds?: number; steps: CallbackStep[] }[];
  workers: Script[];
}

const file = join(import.meta.dirname, '..', '..', 'clients', 'vectors.json');
export const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vectors;
export const TOKEN = 'secret';

interface Stage {
  url: string;
  /** Resolves once so many steps have been asked for. */
  asked: (count: number) => Promise<void>;
  stopsBy: (stop: () => void) => void;
}

/** Serves what the script says until the worker has ended: it has to ask for just that. */
export async function playScript(script: Script, start: (stage: Stage) => Promise<void>): Promise<void> {
  const left = [...script.steps];
  const faults: string[] = [];
  let last: Step | undefined;
  let stop: () => void = () => undefined;
  const waiting: { count: number; go: () => void }[] = [];
  const asked = (count: number) =>
    new Promise<void>((go) => {
      waiting.push({ count, go });
      wake();
    });
  const wake = () => {
    for (const { count, go } of waiting) if (script.steps.length - left.length >= count) go();
  };
  const server = await serveHttp(
    withBody((request, body, response) => {
      const together = left.findIndex((step) => step.together !== true);
      const candidates = left.slice(0, Math.max(1, together === -1 ? left.length : together));
      const step = candidates.find((one) => isAskedFor(one, request, body));
      if (step !== undefined) left.splice(left.indexOf(step), 1);
      else if (last?.mayRepeat !== true || !isAskedFor(last, request, body)) {
        faults.push(`${request.url ?? ''} ${body.slice(0, 200)}`);
        stop();
      }
      last = step ?? last;
      wake();
      if (step?.stop === true) stop();
      send(step === undefined && faults.length > 0 ? { status: 409 } : (last?.answer ?? 'close'), response);
    }),
  );
  try {
    const end = start({ url: `${server.url}/cron`, asked, stopsBy: (given) => (stop = given) });
    const ended = await end.then(
      () => undefined,
      (error: unknown) => (error as Error).message,
    );
    expect({ faults, left: left.filter(({ optional }) => optional !== true), ended }).toEqual({
      ...{ faults: [], left: [] },
      ended: script.ends,
    });
  } finally {
    await server.close();
  }
}

function isAskedFor(step: Step, request: IncomingMessage, sent: string): boolean {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://127.0.0.1');
  const { path, query = {}, body, text, times = 1 } = step;
  const isBody =
    text === undefined ? body === undefined || isDeepStrictEqual(JSON.parse(sent), body) : sent === text.repeat(times);
  return (
    request.method === 'POST' &&
    request.headers.authorization === `Bearer ${TOKEN}` &&
    pathname === `/cron/api/v1${path}` &&
    isDeepStrictEqual(Object.fromEntries(searchParams), query) &&
    isBody
  );
}

function send(answer: Step['answer'], response: ServerResponse): void {
  if (answer === 'hold') return;
  if (answer === 'close') {
    response.destroy();
    return;
  }
  if (answer === 'endless') {
    void pipeline(Readable.from(forEver()), response.writeHead(200)).catch(() => undefined);
    return;
  }
  const { status, headers, body = {} } = answer;
  const type = `application/${status < 400 ? '' : 'problem+'}json`;
  response.writeHead(status, { 'content-type': type, ...headers }).end(JSON.stringify(body));
}

function* forEver(): Generator<Buffer> {
  const bytes = Buffer.alloc(1024 * 1024, ' ');
  for (;;) yield bytes;
}
