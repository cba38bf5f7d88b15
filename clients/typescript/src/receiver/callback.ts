import type { CompletionInput } from '../generated/types.gen.ts';
import { parseJson, stringifyJson } from '../json-text.ts';
import { isFinal, pause, secondsUntilAgain } from '../worker/repeat.ts';
import type { HandedRun } from './handed-run.ts';
import type { Callback, Deps } from './options.ts';
import { Later, busyReply, messageOf, replyOf } from './reply.ts';
import type { Reply, Verdict } from './store.ts';

interface OneJob {
  run: HandedRun;
  /** The highest that has come: an older one has no say any more. */
  attempt: number;
  progress: number | null;
  stop: AbortController;
}

interface Jobs extends Deps {
  callback: Callback;
  underWay: Map<string, OneJob>;
}

const HEARTBEAT_SECONDS = 20;

/** Answers 202 at once and works behind it: the run is here, and its end will be reported. */
export function createJobs(callback: Callback, deps: Deps): (run: HandedRun, verdict: Verdict) => Promise<Reply> {
  const jobs: Jobs = { ...deps, callback, underWay: new Map() };
  return (run, verdict) => {
    const { runId, attempt } = run;
    const known = jobs.underWay.get(runId);
    const isBusy = known === undefined ? verdict.state === 'busy' : known.stop.signal.aborted;
    if (isBusy) return Promise.resolve(busyReply());
    if (known === undefined) startJob(jobs, run, verdict);
    else known.attempt = Math.max(known.attempt, attempt);
    return Promise.resolve(replyOf(202, {}));
  };
}

function startJob(jobs: Jobs, run: HandedRun, verdict: Verdict): void {
  const job = { run, attempt: run.attempt, progress: null, stop: new AbortController() };
  jobs.underWay.set(run.runId, job);
  // Done, and firelock has not heard of it: only the report is missing.
  const end = verdict.state === 'done' ? reportDone(jobs, job, outcomeIn(verdict.reply)) : follow(jobs, job);
  void end.catch((error: unknown) => jobs.onError(error, run.runId));
}

async function follow(jobs: Jobs, job: OneJob): Promise<void> {
  const { store, onError, underWay } = jobs;
  const { runId } = job.run;
  const outcome = await outcomeOf(jobs, job);
  if (outcome?.status === 'succeeded') {
    const reply: Reply = { status: 202, headers: {}, body: stringifyJson(outcome) };
    // Remembered before it is reported. Where that fails, it is done nevertheless.
    await store.finish(runId, job.attempt, reply).catch((error: unknown) => onError(error, runId));
    return reportDone(jobs, job, outcome);
  }
  const reported = outcome === null ? job.attempt : await report(jobs, job, outcome);
  // In this order: what comes between is answered "busy", and not taken for a job that is under way.
  underWay.delete(runId);
  await store.release(runId, job.attempt);
  if (job.attempt === reported) return;
  // Opened again, and taken here while the report was on its way.
  const verdict = await store.begin(runId, job.attempt);
  if (verdict.state === 'new') startJob(jobs, { ...job.run, attempt: job.attempt }, verdict);
}

async function reportDone(jobs: Jobs, job: OneJob, outcome: CompletionInput): Promise<void> {
  let reported: number;
  do reported = await report(jobs, job, outcome);
  while (reported < job.attempt);
  jobs.underWay.delete(job.run.runId);
}

/** Null: there is nothing to report, as firelock wants no result. */
async function outcomeOf(jobs: Jobs, job: OneJob): Promise<CompletionInput | null> {
  const { work, onError, callback } = jobs;
  const { run, stop } = job;
  const seconds = callback.heartbeatSeconds ?? HEARTBEAT_SECONDS;
  const beats = setInterval(() => {
    void beat(callback, job).catch((error: unknown) => onError(error, run.runId));
  }, seconds * 1000);
  try {
    const progress = (done: number) => (job.progress = done);
    return { status: 'succeeded', result: (await work(run, { signal: stop.signal, progress })) ?? null };
  } catch (error) {
    onError(error, run.runId);
    if (stop.signal.aborted) return null;
    return { status: 'failed', error: messageOf(error), ...(error instanceof Later && { retry: true }) };
  } finally {
    clearInterval(beats);
  }
}

/** @throws where firelock did not take it; the next one says the same */
async function beat({ firelock }: Callback, job: OneJob): Promise<void> {
  const { attempt, progress } = job;
  const body = { attempt, ...(progress !== null && { progress }) };
  await firelock.heartbeatRun({ id: job.run.runId, body }).catch((error: unknown) => {
    // Cancelled, ended, or sent to somebody else; unless a higher attempt has come here meanwhile.
    if (isFinal(error) && job.attempt === attempt) job.stop.abort(error);
    throw error;
  });
}

/** Until firelock takes it, or refuses it for good: a run without a report would be done again. Answers which attempt it was of. */
async function report({ callback, onError }: Jobs, job: OneJob, outcome: CompletionInput): Promise<number> {
  const { runId } = job.run;
  for (let failures = 1; ; failures += 1) {
    const { attempt } = job;
    try {
      await callback.firelock.completeRun({ id: runId, body: { ...outcome, attempt } });
      return attempt;
    } catch (error) {
      onError(error, runId);
      // A higher attempt may have come while this was asked: then that one has the say.
      if (isFinal(error) && job.attempt === attempt) return attempt;
      await pause(secondsUntilAgain(error, failures));
    }
  }
}

/** The digits of the result stay as they were written. */
function outcomeIn({ body }: Reply): CompletionInput {
  return parseJson(body, /^result$/) as CompletionInput;
}
