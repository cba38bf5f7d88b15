import { once } from 'node:events';
import { Agent, type IncomingMessage, type ServerResponse, createServer, request as ask } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listenOnLoopback } from '../../support/loopback.ts';
import type { WorkerCall } from '../checker/history.ts';

/**
 * What becomes of a worker's calls: `open` goes on to an instance that lives · `cut` ends the connection · `lose` goes on, and with every
 * other one ends the connection instead of answering: done, and the worker does not know.
 */
export type GatewayMode = 'open' | 'cut' | 'lose';

/** One worker's way to the instances, as a load balancer is, which writes down what was said. */
export interface WorkerGateway {
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

export async function startWorkerGateway(worker: string, urls: readonly string[]): Promise<WorkerGateway> {
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
function saidBy(
  { url = '' }: IncomingMessage,
  sent: Buffer,
): Omit<WorkerCall, 'worker' | 'askedAt' | 'answeredAt'> {
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
