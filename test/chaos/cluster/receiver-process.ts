/** The receiver's own process: its log must survive whatever happens to the campaign's other parts, and share no event loop with them. */
import { appendFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { serveHttp, withBody } from '../../support/loopback.ts';
import { type Answer, type Arrival, type Lookup, type Notice, senderOf } from '../checker/history.ts';
import { NOTICES, THROUGH, TOKEN } from '../load/load-definitions.ts';
import { createRandom } from '../random.ts';
import type { ReceiverMessage, ReceiverOptions, ReceiverRequest } from './receiver.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as ReceiverOptions;
const random = createRandom(options.seed, 'receiver');
let rates = options.rates;
/** Runs that were taken, by whatever answer the sender saw: what a lookup tells. */
const taken = new Set<string>();
const open = new Set<() => void>();
let lines: string[] = [];
let arrivals = 0;
let lastCanaryAt = 0;

const receive = withBody((request, text, response) => {
  if (request.url === '/token') answerToken(response);
  else if (request.url?.replace(THROUGH, '').startsWith('/lookup/') === true) lookUp(request, response);
  else if (request.url === NOTICES) takeNotice(request, response);
  else arrive(request, text, response);
});
const { port } = await serveHttp(receive, 30_000);
send({ type: 'listening', port });
setInterval(flush, 200);

process.on('message', (message: ReceiverRequest) => {
  if (message.type === 'rates') rates = message.rates;
  else if (message.type === 'status') send({ type: 'status', arrivals, lastCanaryAt });
  else {
    // What is still open was never answered.
    for (const close of [...open]) close();
    flush();
    send({ type: 'ended' });
    process.exit(0);
  }
});
process.on('disconnect', () => process.exit(0));

function arrive(request: IncomingMessage, text: string, response: ServerResponse): void {
  const answer = choose();
  const heldMs = answer === 'ok' || answer === 'slow' ? holdOf(request) : 0;
  const arrival = {
    ...read(request, text),
    at: Date.now(),
    sender: senderOf(request.socket.remoteAddress ?? ''),
    answer,
  };
  arrivals += 1;
  if (arrival.scheduleId === options.canaryId) lastCanaryAt = Math.max(lastCanaryAt, arrival.scheduledFor);
  if (answer !== 'unavailable' && answer !== 'error') taken.add(arrival.runId);
  const log = once((delivered: boolean) => {
    open.delete(abandon);
    lines.push(JSON.stringify({ arrival: { ...arrival, answeredAt: Date.now(), delivered } satisfies Arrival }));
  });
  const abandon = (): void => log(false);
  open.add(abandon);
  // Once it is finished the response has no socket any more.
  const { socket } = request;
  response.on('finish', () => log(!socket.destroyed));
  response.on('close', abandon);
  if (heldMs === 0) respond(answer, response);
  else setTimeout(() => respond(answer, response), heldMs);
}

/** What a schedule asks for, give or take. */
function holdOf({ url }: IncomingMessage): number {
  const asked = Number(/\?hold=(\d+)$/.exec(url ?? '')?.[1] ?? 0);
  return asked === 0 ? 0 : Math.round(asked * random.between(0.5, 1.2));
}

function respond(answer: Answer, response: ServerResponse): void {
  switch (answer) {
    case 'ok':
      response.end(TAKEN);
      return;
    case 'slow':
      setTimeout(() => response.end(TAKEN), random.between(200, 800));
      return;
    case 'unavailable':
      response.writeHead(503).end();
      return;
    case 'error':
      response.writeHead(500).end();
      return;
    case 'lost':
      response.socket?.resetAndDestroy();
      return;
    case 'stalled':
      setTimeout(() => response.socket?.resetAndDestroy(), options.stallMs).unref();
      return;
    case 'dripped':
      drip(response);
  }
}

const TAKEN = '{"taken":true}';

/** For a moment: the next one is soon needed. */
function answerToken(response: ServerResponse): void {
  response.end(JSON.stringify({ access_token: TOKEN, token_type: 'Bearer', expires_in: 2 }));
}

/** A byte now and then, and never the last one. */
function drip(response: ServerResponse): void {
  response.writeHead(200, { 'content-length': '1000' });
  const timer = setInterval(() => response.write(' '), 200);
  response.on('close', () => clearInterval(timer));
}

function lookUp(request: IncomingMessage, response: ServerResponse): void {
  const runId = (request.url ?? '').replace(THROUGH, '').slice('/lookup/'.length);
  const statusCode = random.chance(rates.lookupFails) ? 500 : taken.has(runId) ? 200 : 404;
  const lookup = { at: Date.now(), sender: senderOf(request.socket.remoteAddress ?? ''), runId, statusCode };
  const log = once((delivered: boolean) => {
    lines.push(JSON.stringify({ lookup: { ...lookup, delivered } satisfies Lookup }));
  });
  response.on('finish', () => log(true));
  response.on('close', () => log(false));
  response.writeHead(statusCode).end('{}');
}

/** It is refused now and then, as everything else is. */
function takeNotice({ headers }: IncomingMessage, response: ServerResponse): void {
  const answer = choose();
  const isTaken = answer === 'ok' || answer === 'slow';
  const notice = { at: Date.now(), messageId: String(headers['webhook-id']) };
  const log = once((delivered: boolean) => {
    lines.push(JSON.stringify({ notice: { ...notice, delivered } satisfies Notice }));
  });
  response.on('finish', () => log(isTaken));
  response.on('close', () => log(false));
  respond(answer, response);
}

function choose(): Answer {
  let drawn = random.next();
  for (const [answer, rate] of Object.entries(rates.answers)) {
    drawn -= rate;
    if (drawn < 0) return answer as Answer;
  }
  return 'ok';
}

interface Read {
  runId: string;
  scheduleId: string;
  scheduledFor: number;
  attempt: number;
  marker: string;
  fault: string | null;
}

function read(request: IncomingMessage, text: string): Read {
  const nothing = { runId: '', scheduleId: '', scheduledFor: NaN, attempt: NaN, marker: '' };
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const payload = body['payload'] as { marker: string };
    const scheduledFor = Date.parse(String(body['scheduledFor']));
    const { runId, scheduleId } = body as { runId: string; scheduleId: string };
    const isThrough = body['through'] === true;
    const faults = [
      request.headers['webhook-id'] === runId ? null : 'webhook-id is not the run id',
      request.headers['idempotency-key'] === runId ? null : 'idempotency-key is not the run id',
      request.url?.split('?')[0] === `${isThrough ? THROUGH : ''}/fire/${scheduleId}`
        ? null
        : `sent to ${request.url ?? ''}`,
      isThrough && !isLoggedIn(request) ? 'without the login of its connection' : null,
      isThrough && body['marker'] !== payload.marker ? 'its text says another marker' : null,
      body['runName'] === nameOf(body, scheduleId, scheduledFor) ? null : 'wrong runName',
      request.method === 'POST' ? null : `method ${request.method ?? ''}`,
    ];
    const fault = faults.find((one) => one !== null) ?? null;
    return {
      runId,
      scheduleId,
      scheduledFor,
      attempt: Number(body['attempt']),
      marker: payload.marker,
      fault,
    };
  } catch {
    return { ...nothing, fault: `not the body of a handoff: ${text.slice(0, 80)}` };
  }
}

function isLoggedIn({ headers }: IncomingMessage): boolean {
  return headers.authorization === `Bearer ${TOKEN}` && headers['x-team'] === 'chaos';
}

/** A fire by hand is not planned, so it has no name: the envelope says null, a template the run's id. */
function nameOf(body: Record<string, unknown>, scheduleId: string, scheduledFor: number): unknown {
  if (body['trigger'] === 'manual' && body['through'] === true) return body['runId'];
  return body['trigger'] === 'manual' ? null : `${scheduleId}@${new Date(scheduledFor).toISOString()}`;
}

function once<Argument>(action: (argument: Argument) => void): (argument: Argument) => void {
  let done = false;
  return (argument) => {
    if (!done) action(argument);
    done = true;
  };
}

function flush(): void {
  if (lines.length > 0) appendFileSync(options.logFile, `${lines.join('\n')}\n`);
  lines = [];
}

function send(message: ReceiverMessage): void {
  process.send?.(message);
}
