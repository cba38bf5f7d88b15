import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Clock } from '../../runtime/clock.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { DeliveredRun, KillTime } from './verdict.ts';

export interface DemoInstance {
  readonly number: number;
  /** Of its present process; empty: it has not said so yet. */
  url: string;
  state: 'starting' | 'ready' | 'killed';
  kills: number;
  /** The ids under which the others have known its present or last process. */
  ids: string[];
  process: ChildProcess | null;
}

const INSTANCES = 3;
const ANSWERS_WITHIN_MS = 20_000;
/** As this file is named: from the sources or built. */
const MAIN = join(import.meta.dirname, '..', '..', `main${extname(import.meta.filename)}`);

/** The three instances over all of their processes, as far as their logs and answers tell. */
export class DemoInstances {
  readonly all: readonly DemoInstance[] = Array.from({ length: INSTANCES }, (_, index) => ({
    ...{ number: index + 1, url: '', state: 'starting', kills: 0, ids: [], process: null },
  }));
  /** Which kill an instance died by, by its id. */
  readonly killedIds = new Map<string, KillTime>();
  /** Why the demo cannot go on; null: it can. */
  fault: string | null = null;
  readonly #databaseUrl: string;
  readonly #clock: Clock;

  constructor(databaseUrl: string, clock: Clock) {
    this.#databaseUrl = databaseUrl;
    this.#clock = clock;
  }

  get ready(): DemoInstance[] {
    return this.all.filter(({ state }) => state === 'ready');
  }

  start(instance: DemoInstance): void {
    const env = { ...process.env, DATABASE_URL: this.#databaseUrl, PORT: '0' };
    const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    Object.assign(instance, { process: child, state: 'starting', url: '', ids: [] });
    let lastLine = '';
    for (const input of [child.stdout, child.stderr])
      createInterface({ input }).on('line', (line) => hear(instance, (lastLine = line)));
    child.once('error', (error) => (this.fault ??= error.message));
    child.once('close', () => {
      instance.process = null;
      if (instance.state !== 'killed') this.fault ??= `instance ${instance.number} ended by itself: ${lastLine}`;
    });
  }

  /** With -9. Answers the time of it, which is complete once the process is gone. */
  kill(instance: DemoInstance): KillTime {
    const time = { from: this.#clock.now(), to: Infinity };
    instance.state = 'killed';
    instance.kills += 1;
    for (const id of instance.ids) this.killedIds.set(id, time);
    instance.process?.once('close', () => (time.to = this.#clock.now()));
    instance.process?.kill('SIGKILL');
    return time;
  }

  /** Asks those that are starting whether they are ready. */
  async look(): Promise<void> {
    for (const one of this.all.filter(({ state, url }) => state === 'starting' && url !== ''))
      await ask(`${one.url}/readyz`, 'GET').then(
        () => (one.state = 'ready'),
        () => undefined,
      );
  }

  /** The first 2xx of any that is ready: one may die at any moment, and all that the demo calls may be called again. @throws for none */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    let fault: unknown = new Error('no instance is ready');
    for (const { url } of this.ready)
      try {
        return await ask(`${url}/api/v1/${path}`, method, body);
      } catch (error) {
        fault = error;
      }
    throw new Error(`${method} ${path}: ${reasonOf(fault)}`);
  }

  async end(): Promise<void> {
    const left = this.all.flatMap(({ process }) => process ?? []);
    const gone = left.map((process) => once(process, 'close'));
    for (const one of this.all) this.kill(one);
    await Promise.all(gone);
  }
}

async function ask(url: string, method: string, body?: unknown): Promise<unknown> {
  const signal = AbortSignal.timeout(ANSWERS_WITHIN_MS);
  const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(url, { method, signal, ...(body === undefined ? {} : json) });
  const text = await response.text();
  if (!response.ok) throw new Error(`it was answered ${response.status}: ${text}`);
  return JSON.parse(text) as unknown;
}

/** What its log says of itself. Most lines are about requests, and are not worth parsing. */
function hear(instance: DemoInstance, line: string): void {
  const [, url] = /listens on (http:\S+?:\d+)/.exec(line) ?? [];
  if (url !== undefined) instance.url = url;
  const [, id] = line.includes('registered as an instance') ? (/"instanceId":"([^"]+)"/.exec(line) ?? []) : [];
  if (id !== undefined) instance.ids.push(id);
}

/**
 * The target of all schedules. It refuses nothing, takes the time that the URL names, and adds what arrives to `deliveries`, in the
 * order of arrival.
 */
export async function startReceiver(clock: Clock, deliveries: DeliveredRun[]) {
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const { scheduledFor, ...run } = JSON.parse(await text(request)) as Sent;
    const key = String(request.headers['idempotency-key']);
    deliveries.push({ ...run, scheduledFor: Date.parse(scheduledFor), key, at: clock.now() });
    const holdMs = Number((request.url ?? '').slice(1));
    setTimeout(() => response.end('{}'), holdMs);
  };
  const server = createServer((request, response) => {
    // Its sender may be gone before all of it has come: then it was not delivered.
    take(request, response).catch(() => response.destroy());
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

type Sent = Pick<DeliveredRun, 'runId' | 'scheduleId' | 'attempt'> & { scheduledFor: string };
