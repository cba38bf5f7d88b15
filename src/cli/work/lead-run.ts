import type { Surroundings } from '../surroundings.ts';
import type { Choice, Claimed } from './job-command.ts';
import {
  type EndRules,
  type Exit,
  type Interruption,
  type JobEnd,
  type Printed,
  createPrinted,
  endOf,
} from './job-end.ts';
import { type Job, type JobDeps, startJob } from './job.ts';
import { launchOf, NotStarted } from './launch.ts';
import { aborted, atMost, backOffMs, pause } from '../common/patience.ts';
import type { Said, WorkCalls } from './work-calls.ts';

export interface LeadDeps extends Omit<JobDeps, 'onOutput'>, EndRules {
  calls: WorkCalls;
  choice: Choice;
  env: Surroundings['env'];
  leaseSeconds: number;
  /** Of what a command has printed. */
  keptBytes: number;
  /** Aborted when what still runs is ended, since the worker has to stop. */
  overdue: AbortSignal;
  /** Aborted when the worker ends, whatever has not been reported. */
  deadline: AbortSignal;
  say: (line: string) => void;
}

/** How long the end of a run waits for its log, and the log for the server after it. */
const LOG_MS = 10_000;

/** Does a claimed run, and reports it; resolves when there is nothing more to say of it. Never rejects. */
export async function leadRun(run: Claimed, deps: LeadDeps): Promise<void> {
  const { say, deadline } = deps;
  const lease = keepLease(run, deps);
  try {
    const { end, log } = await perform(run, lease, deps);
    if (lease.lost.aborted) say(`${run.id}: ended: ${String(lease.lost.reason)}`);
    else await report(run, end, lease, deps);
    if (log !== null) await atMost(LOG_MS, log.done, deadline);
  } finally {
    lease.stop();
  }
}

interface Performed {
  end: JobEnd;
  /** Null: nothing was started. */
  log: LogSender | null;
}

async function perform(run: Claimed, lease: RunLease, deps: LeadDeps): Promise<Performed> {
  const { calls, keptBytes, choice, env, deadline } = deps;
  const printed = createPrinted(keptBytes);
  const log = sendLog(run, printed, calls);
  const onOutput = (bytes: Uint8Array) => {
    printed.add(bytes);
    log.more();
  };
  try {
    const job = await startJob(await launchOf(run, choice, env), { ...deps, onOutput });
    const [exit, why] = await seeToEnd(job, lease.lost, deps);
    log.finish();
    await atMost(LOG_MS, log.done, deadline);
    return { end: { ...endOf(exit, why, deps), result: printed.tail() }, log };
  } catch (error) {
    log.finish();
    if (error instanceof NotStarted) return { end: { status: 'failed', error: error.message }, log: null };
    return { end: endOf({ code: null, signal: null, fault: error as Error }, 'none', deps), log: null };
  }
}

/** Ends it where its time is over, its lease is lost, or the worker has to stop. */
async function seeToEnd(
  job: Job,
  lost: AbortSignal,
  { timeoutSeconds, overdue }: LeadDeps,
): Promise<[Exit, Interruption]> {
  const over = new AbortController();
  const timeout = timeoutSeconds === null ? [] : [waited(timeoutSeconds, over.signal)];
  const what = await Promise.race([
    job.ended,
    ...timeout,
    aborted(overdue, 'stopped' as const, over.signal),
    aborted(lost, 'none' as const, over.signal),
  ]);
  over.abort();
  if (typeof what === 'object') return [what, 'none'];
  await job.end();
  return [await job.ended, what];
}

async function waited(seconds: number, signal: AbortSignal): Promise<'timeout'> {
  await pause(seconds * 1000, signal);
  return 'timeout';
}

/** Until the server has taken it, or says that it will not: what is not reported is done again. */
async function report(run: Claimed, end: JobEnd, lease: RunLease, deps: LeadDeps): Promise<void> {
  const { calls, say, deadline } = deps;
  const how = `${run.id}: ${end.status}${end.error === undefined ? '' : `: ${end.error}`}`;
  for (let failures = 1; ; failures += 1) {
    const said = await calls.complete(run, end);
    const last = said.kind === 'away' || said.kind === 'unknown' ? null : how + whyNot(said, end);
    if (last !== null || deadline.aborted || lease.lost.aborted) {
      say(last ?? `${how}; not reported: ${String(lease.lost.reason ?? 'the server is away')}`);
      return;
    }
    await pause(backOffMs(failures, Math.random()), deadline);
  }
}

/** Nothing where it was taken. */
function whyNot(said: Exclude<Said, { kind: 'away' | 'unknown' }>, { retry }: JobEnd): string {
  if (said.kind === 'done') return '';
  // A server that knows no failures for now would take this one for the last: the lease runs out instead.
  return retry === true && said.status === 400 ? '; left to its lease' : `; not taken: ${said.detail}`;
}

interface RunLease {
  /** Aborted when the server says that the run is not ours any more: cancelled, or with another worker; the reason says how. */
  readonly lost: AbortSignal;
  stop(): void;
}

/** By then a cancelled command learns of it, however long the lease is. */
const MOST_MS = 10_000;
/** A server that is back gives its runs little time to report. */
const AWAY_MS = 3_000;

/**
 * Heartbeats, at a third of the lease at most. Only a refusal ends it: while the server is silent the work goes on, and whether the lease
 * was lost meanwhile is said when it is back.
 */
function keepLease(
  run: Claimed,
  { calls, leaseSeconds }: { calls: Pick<WorkCalls, 'heartbeat'>; leaseSeconds: number },
): RunLease {
  const lost = new AbortController();
  const over = new AbortController();
  const everyMs = Math.min(MOST_MS, (leaseSeconds * 1000) / 3);
  const beat = async (): Promise<void> => {
    let waitMs = everyMs;
    while (!over.signal.aborted && !lost.signal.aborted) {
      await pause(waitMs, over.signal);
      const said = await calls.heartbeat(run, over.signal);
      waitMs = said.kind === 'done' ? everyMs : Math.min(everyMs, AWAY_MS);
      if (said.kind === 'refused' && said.status !== 400) lost.abort(said.detail);
    }
  };
  void beat();
  return { lost: lost.signal, stop: () => over.abort() };
}

/** Appends what a command prints to the log of its run, while it goes. */
interface LogSender {
  /** The command has printed something. */
  more(): void;
  /** It prints no more. */
  finish(): void;
  /** The server has all that there was to be had; or it wants none. */
  readonly done: Promise<void>;
}

/** Of one call; the server takes no more. */
const PART_BYTES = 64 * 1024;
/** What is printed meanwhile goes with the same call. */
const GATHER_MS = 300;

/**
 * One call at a time, in order. What got no answer is sent again from the same offset; if more is printed meanwhile than `printed` keeps,
 * it goes on further ahead, and the server counts the gap.
 */
export function sendLog(run: Claimed, printed: Printed, calls: Pick<WorkCalls, 'append'>): LogSender {
  const finished = new AbortController();
  let news = Promise.withResolvers<null>();
  const send = async (): Promise<void> => {
    for (let failures = 0; ;) {
      const part = printed.next(PART_BYTES);
      if (part === null) {
        if (finished.signal.aborted) return;
        await news.promise;
        await pause(GATHER_MS, finished.signal);
        continue;
      }
      const said = await calls.append(run, part.offset, part.bytes);
      // Refused: the run is not ours any more, or it has been over for too long; its heartbeat says which.
      if (said.kind === 'refused' || said.kind === 'unknown') return;
      if (said.kind === 'done') printed.taken(part.offset + part.bytes.length);
      failures = said.kind === 'done' ? 0 : failures + 1;
      if (failures > 0) await pause(backOffMs(failures, Math.random()));
      else if (part.bytes.length < PART_BYTES) await pause(GATHER_MS, finished.signal);
    }
  };
  return {
    more: () => {
      news.resolve(null);
      news = Promise.withResolvers();
    },
    finish: () => {
      finished.abort();
      news.resolve(null);
    },
    done: send(),
  };
}
