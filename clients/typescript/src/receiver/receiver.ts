import { createJobs } from './callback.ts';
import { type HandedRun, readHandedRun } from './handed-run.ts';
import { type Incoming, TooLarge, fetchHandler, nodeHandler } from './http.ts';
import type { Callback, Deps, ReceiverOptions } from './options.ts';
import { busyReply, errorReply, failureReply, messageOf, replyOf } from './reply.ts';
import { type HeaderReader, SignatureError, createVerifier } from './signature.ts';
import { type Reply, memoryStore } from './store.ts';

export interface Receiver {
  /** For node:http: `createServer(receiver.node)`. */
  node: ReturnType<typeof nodeHandler>;
  /** For what passes a Request and takes a Response. */
  fetch: ReturnType<typeof fetchHandler>;
}

const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** Verifies what arrives, has the work of each run done once, and answers. @throws TypeError where a secret is none */
export function createReceiver(options: ReceiverOptions): Receiver {
  const { secrets, toleranceSeconds, now, maxBodyBytes = MAX_BODY_BYTES, onError = writeError } = options;
  const time = { ...(toleranceSeconds !== undefined && { toleranceSeconds }), ...(now && { now }) };
  const verify = secrets === null ? null : createVerifier(secrets, time);
  const deps: Deps = { store: options.store ?? memoryStore(), work: options.work, onError };
  const take = createTaker(deps, options.callback);
  const answer = async (incoming: Incoming): Promise<Reply> => {
    try {
      return await receive(incoming, verify, take);
    } catch (error) {
      // The store is away, most likely: firelock is to try again.
      onError(error, incoming.header('webhook-id'));
      return errorReply(503, 'the receiver cannot take it now', { 'retry-after': '5' });
    }
  };
  return { node: nodeHandler(answer, maxBodyBytes), fetch: fetchHandler(answer, maxBodyBytes) };
}

type Verifier = ReturnType<typeof createVerifier>;

async function receive(
  { method, header, body }: Incoming,
  verify: Verifier | null,
  take: (run: HandedRun) => Promise<Reply>,
): Promise<Reply> {
  if (method === 'GET' || method === 'HEAD') return errorReply(405, 'a run comes by POST', { allow: 'POST' });
  const bytes = await body().catch((error: unknown) => {
    if (error instanceof TooLarge) return null;
    throw error;
  });
  if (bytes === null) return errorReply(413, 'the body is too large');
  const fault = verify === null ? null : await faultOfSignature(verify, header, bytes);
  if (fault !== null) return errorReply(401, fault);
  const run = readHandedRun(new TextDecoder().decode(bytes));
  if (run === null) return errorReply(400, 'the body is no run of firelock');
  // A lookup or a cancellation is signed as well, with an empty body, so that its signature fits no run.
  if (run.runId !== header('webhook-id')) return errorReply(400, 'webhook-id is not the run of the body');
  return take(run);
}

async function faultOfSignature(
  verify: Verifier,
  header: HeaderReader,
  body: Uint8Array<ArrayBuffer>,
): Promise<string | null> {
  try {
    await verify(header, body);
    return null;
  } catch (error) {
    if (error instanceof SignatureError) return error.message;
    throw error;
  }
}

/** Takes verified runs: does the work once, and answers the same to each further attempt. */
function createTaker(deps: Deps, callback: Callback | undefined): (run: HandedRun) => Promise<Reply> {
  const jobs = callback === undefined ? null : createJobs(callback, deps);
  /** What this process is working on: another attempt waits for the same end. */
  const underWay = new Map<string, Promise<Reply>>();
  return async (run) => {
    const { runId, attempt } = run;
    const verdict = await deps.store.begin(runId, attempt);
    if (verdict.state === 'stale') {
      return errorReply(409, `attempt ${attempt} is older than attempt ${verdict.seen}, which was here`);
    }
    if (jobs !== null) return jobs(run, verdict);
    if (verdict.state === 'done') return verdict.reply;
    if (verdict.state === 'busy') return underWay.get(runId) ?? busyReply();
    const reply = doWork(run, deps);
    underWay.set(runId, reply);
    try {
      return await reply;
    } finally {
      // Once it is released, the next attempt may have begun.
      if (underWay.get(runId) === reply) underWay.delete(runId);
    }
  };
}

async function doWork(run: HandedRun, { store, work, onError }: Deps): Promise<Reply> {
  const { runId, attempt } = run;
  const job = { signal: new AbortController().signal, progress: () => undefined };
  let reply: Reply;
  try {
    reply = replyOf(200, await work(run, job));
  } catch (error) {
    onError(error, runId);
    await store.release(runId, attempt);
    return failureReply(error);
  }
  // It is done, whether or not that can be remembered: any answer but 2xx would have it done again.
  await store.finish(runId, attempt, reply).catch((error: unknown) => onError(error, runId));
  return reply;
}

function writeError(error: unknown, runId: string | null): void {
  // oxlint-disable-next-line no-console -- a library has nowhere else to say it
  console.error(`firelock-client: run ${runId ?? '?'}: ${messageOf(error)}`);
}
