import { openSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, Agent, createServer, request as ask } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type Program, startProgram } from '../../support/programs.ts';
import { QUICK_START } from '../../support/runner/quick-start.ts';
import { listenOnLoopback } from '../../support/loopback.ts';
import type { WorkerCall } from '../checker/history.ts';

/** The queue of the commands. */
export const COMMANDS = 'commands';
/** The shortest there is: what a worker has when it dies is soon another's. */
export const LEASE_SECONDS = 5;
export const GRACE_SECONDS = 1;
const CONCURRENCY = 12;

/** One `firelock work`, over all of its processes, each of which has its name. */
export interface Worker {
  readonly name: string;
  readonly gateway: WorkerGateway;
  /** The fault that is at work on it, if any: one at a time. */
  busy: string | null;
  start(): void;
  running(): boolean;
  endedAt(): number;
  signal(name: NodeJS.Signals): void;
  gone(): Promise<void>;
  close(): Promise<void>;
}

interface WorkerOptions {
  name: string;
  /** Of the program's source. */
  root: string;
  /** Of the instances. */
  urls: readonly string[];
  /** For its log, and for its own files. */
  directory: string;
}

export async function createWorker({ name, root, urls, directory }: WorkerOptions): Promise<Worker> {
  const gateway = await startWorkerGateway(name, urls);
  const log = openSync(join(directory, `worker-${name}.log`), 'a');
  const options = { name, lease: LEASE_SECONDS, grace: GRACE_SECONDS, concurrency: CONCURRENCY };
  const args = [
    'work',
    COMMANDS,
    ...Object.entries(options).flatMap(([option, value]) => [`--${option}`, String(value)]),
  ];
  const variables = { ...QUICK_START, FIRELOCK_URL: gateway.url, TMPDIR: directory };
  let program: Program | undefined;
  let endedAt = 0;
  return {
    name,
    gateway,
    busy: null,
    start: () => {
      program = startProgram({ root, args, variables, output: log });
      void program.exited.then(() => {
        endedAt = Date.now();
      });
    },
    running: () => program?.isRunning() === true,
    endedAt: () => endedAt,
    signal: (signal) => program?.signal(signal),
    gone: async () => {
      await program?.exited;
    },
    close: async () => {
      await program?.kill();
      await gateway.close();
    },
  };
}

/**
 * What becomes of a worker's calls: `open` goes on to an instance that lives · `cut` ends the connection · `lose` goes on, and with every
 * other one ends the connection instead of answering: done, and the worker does not know.
 */
export type GatewayMode = 'open' | 'cut' | 'lose';

/** One worker's way to the instances, as a load balancer is, which writes down what was said. */
interface WorkerGateway {
  readonly url: string;
  readonly calls: WorkerCall[];
  set(mode: GatewayMode): void;
  close(): Promise<void>;
}

interface Gate {
  worker: string;
  /** Addresses of the instances. */
  urls: readonly string[];
  mode: GatewayMode;
  answers: number;
  /** Whose turn it is; that of one that lives stays. */
  turn: number;
  agent: Agent;
  calls: WorkerCall[];
}

async function startWorkerGateway(worker: string, urls: readonly string[]): Promise<WorkerGateway> {
  const gate: Gate = {
    worker,
    urls,
    mode: 'open',
    answers: 0,
    turn: 0,
    agent: new Agent({ keepAlive: true }),
    calls: [],
  };
  const server = createServer((request, response) => {
    void pass(gate, request, response).catch(() => request.socket.destroy());
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    calls: gate.calls,
    set: (mode) => {
      gate.mode = mode;
      if (mode === 'cut') server.closeAllConnections();
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      gate.agent.destroy();
      await closed;
    },
  };
}

async function pass(gate: Gate, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const askedAt = Date.now();
  const sent = await buffer(request);
  if (gate.mode === 'cut') throw new Error('cut off');
  const call: WorkerCall = { worker: gate.worker, ...saidBy(request, sent), askedAt, answeredAt: Infinity };
  gate.calls.push(call);
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const answer = await askAny(gate, request, sent, gone.signal);
  const body = await buffer(answer);
  call.answeredAt = Date.now();
  call.status = answer.statusCode ?? 0;
  if (call.action === 'claim' && call.status === 200)
    call.given = (JSON.parse(body.toString()) as { items: { id: string; attempts: number }[] }).items.map(
      ({ id: runId, attempts: attempt }) => ({ runId, attempt }),
    );
  // It is also taken when the lease has run out, as long as no other worker has the run.
  if (call.action === 'heartbeat' && call.status === 200)
    call.isHeld = (JSON.parse(body.toString()) as { status: string }).status === 'running';
  gate.answers += 1;
  if ((gate.mode as GatewayMode) === 'lose' && gate.answers % 2 === 0) throw new Error('the answer is lost');
  response.writeHead(call.status, answer.headers).end(body);
  await once(response, 'finish', { signal: gone.signal });
  call.heardAt = Date.now();
}

/** Of an instance that takes the connection; one that is down does not. */
async function askAny(
  gate: Gate,
  { method, url, headers }: IncomingMessage,
  sent: Buffer,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  for (let tries = 1; ; tries += 1) {
    const to = gate.urls[gate.turn % gate.urls.length] ?? '';
    const asked = ask(`${to}${url ?? ''}`, { method, headers, agent: gate.agent, signal });
    asked.end(sent);
    try {
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      return answer;
    } catch (error) {
      gate.turn += 1;
      if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED' || tries >= gate.urls.length) throw error;
    }
  }
}

/** What a call is about, from its address and its body. */
function saidBy({ url = '' }: IncomingMessage, sent: Buffer): Omit<WorkerCall, 'worker' | 'askedAt' | 'answeredAt'> {
  const { pathname, searchParams } = new URL(url, 'http://gateway');
  const [, , , , subject = '', action = ''] = pathname.split('/');
  if (action === 'claim') return { action, runId: null, attempt: 0 };
  if (action === 'log') {
    const offset = Number(searchParams.get('offset'));
    return {
      action,
      runId: subject,
      attempt: Number(searchParams.get('attempt')),
      offset,
      bytes: sent.length,
    };
  }
  const said = JSON.parse(sent.toString()) as { attempt: number; status?: string; retry?: boolean };
  const word = said.status === undefined ? {} : { word: said.retry === true ? 'later' : said.status };
  return { action, runId: subject, attempt: said.attempt, ...word };
}
