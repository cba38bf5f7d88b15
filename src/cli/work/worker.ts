import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reasonOf } from '../../runtime/reason.ts';
import { CliError, EXIT, failure } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';
import type { Choice, Claimed } from './job-command.ts';
import type { EndRules } from './job-end.ts';
import { type LeadDeps, leadRun } from './lead-run.ts';
import { backOffMs, pause } from '../common/patience.ts';
import { startGuard } from './process-guard.ts';
import { type WorkCalls, createWorkCalls, whyOf } from './work-calls.ts';

export interface WorkOptions extends EndRules {
  queues: readonly string[];
  /** Of the worker; two with one name are told apart by the attempts of their runs. */
  name: string;
  choice: Choice;
  /** How many commands at the same time. */
  concurrency: number;
  leaseSeconds: number;
  graceSeconds: number;
}

interface State {
  options: WorkOptions;
  calls: WorkCalls;
  lead: LeadDeps;
  /** Aborted by SIGTERM or Ctrl-C. */
  stopping: AbortController;
  underWay: Set<Promise<void>>;
}

/** What all commands together have in memory of what they print, and each of them at most and at least. */
const [ALL_BYTES, MOST_BYTES, LEAST_BYTES] = [32 * 1024 * 1024, 256 * 1024, 32 * 1024];
/** What is reported at the last moment may take that long. */
const LAST_WORDS_SECONDS = 3;

/**
 * Claims runs of these queues and does them, until `stop` is aborted and what is under way has ended: by itself within the grace, else by
 * TERM and KILL. @throws CliError if the first claim is refused
 */
export async function work(options: WorkOptions, around: Surroundings, stop: AbortSignal): Promise<void> {
  const { name, queues, leaseSeconds, concurrency, graceSeconds } = options;
  const folder = await mkdtemp(join(tmpdir(), 'firelock-work-')).catch((error: unknown) => {
    throw failure(`a worker needs a folder for its files: ${reasonOf(error)}; TMPDIR says where`);
  });
  const stopping = new AbortController();
  const [overdue, deadline] = [new AbortController(), new AbortController()];
  const say = (line: string) => around.out.write(`${line}\n`);
  const calls = createWorkCalls(around, { workerId: name, leaseSeconds });
  const keptBytes = Math.max(LEAST_BYTES, Math.min(MOST_BYTES, Math.floor(ALL_BYTES / concurrency)));
  const lead = {
    ...{ ...options, calls, folder, keptBytes, say, env: around.env },
    ...{ guard: startGuard({ graceSeconds, folder }), overdue: overdue.signal, deadline: deadline.signal },
  };
  const state: State = { options, calls, lead, stopping, underWay: new Set() };
  const timers: NodeJS.Timeout[] = [];
  const stopped = () => {
    stopping.abort();
    const last = (2 * graceSeconds + LAST_WORDS_SECONDS) * 1000;
    timers.push(
      setTimeout(() => overdue.abort(), graceSeconds * 1000),
      setTimeout(() => deadline.abort(), last),
    );
  };
  if (stop.aborted) stopped();
  else stop.addEventListener('abort', stopped, { once: true });
  say(`${name} works for ${queues.join(', ')}`);
  try {
    await Promise.all(queues.map((queue) => claimWhile(state, queue)));
  } finally {
    stopping.abort();
    await Promise.all(state.underWay);
    for (const timer of timers) clearTimeout(timer);
    say(`${name} has stopped`);
  }
}

/** Behind most proxies a call may wait that long. */
const WAIT_SECONDS = 20;
/** As the API has it. */
const MOST_RUNS = 100;

/**
 * The claims of one queue. With several of them each waits for one run, so that none keeps the others from work; as long as there are
 * more, it takes as many as there is room for.
 */
async function claimWhile(state: State, queue: string): Promise<void> {
  const { options, calls, stopping, lead } = state;
  const { signal } = stopping;
  const isAlone = options.queues.length === 1;
  let hasWork = false;
  let isKnown = false;
  for (let failures = 0; !signal.aborted;) {
    const free = options.concurrency - state.underWay.size;
    if (free <= 0) {
      await Promise.race([...state.underWay]);
      continue;
    }
    const waits = isAlone || !hasWork;
    const max = isAlone || hasWork ? Math.min(MOST_RUNS, free) : 1;
    try {
      const runs = await calls.claim(queue, { max, waitSeconds: waits ? WAIT_SECONDS : 0 }, signal);
      await Promise.all(runs.map((run) => begin(state, run)));
      hasWork = runs.length > 0;
      isKnown = true;
      failures = 0;
    } catch (error) {
      const isAway = error instanceof CliError && error.exitCode === EXIT.unreachable;
      if (!isKnown && !isAway) throw error;
      if (stopping.signal.aborted) return;
      // oxlint-disable-next-line no-useless-assignment -- the next round reads it
      const waitMs = backOffMs((failures += 1), Math.random());
      lead.say(`${queue}: ${whyOf(error)}; again in ${(waitMs / 1000).toFixed(1)} s`);
      await pause(waitMs, signal);
    }
  }
}

/** What cannot begin now is given back; a server that does not know of that keeps it for this worker. */
async function begin(state: State, run: Claimed): Promise<void> {
  const { calls, options, stopping, underWay, lead } = state;
  if (stopping.signal.aborted || underWay.size >= options.concurrency) {
    const said = await calls.release(run);
    if (said.kind !== 'unknown' || stopping.signal.aborted) return;
  }
  const led = leadRun(run, lead).finally(() => underWay.delete(led));
  underWay.add(led);
}
