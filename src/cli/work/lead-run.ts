import type { Surroundings } from '../surroundings.ts';
import type { Claimed } from './claimed-runs.ts';
import { type EndRules, type Exit, type Interruption, type JobEnd, endOf } from './job-end.ts';
import type { Choice } from './job-command.ts';
import { type Job, type JobDeps, startJob } from './job.ts';
import { type RunLease, keepLease } from './keep-lease.ts';
import { NotStarted, launchOf } from './launch.ts';
import { aborted, atMost, backOffMs, pause } from './patience.ts';
import { createPrinted } from './printed.ts';
import { type LogSender, sendLog } from './send-log.ts';
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
