import { faultOfEnd } from './check-deliveries.ts';
import { nameOf } from './check-plan.ts';
import {
  type Commands,
  type Execution,
  type History,
  type LogRead,
  type RunRow,
  type WorkerCall,
  slackOf,
} from './history.ts';
import { type Timeline, grouped, isOfCommands, spanOf } from './timeline.ts';
import { type Report, isoText } from './violations.ts';

/** `sysexits.h`: later. */
const EX_TEMPFAIL = 75;
/** A worker that hears of it has to look at its commands, and these have to end. */
const ENDS_WITHIN_MS = 1_000;

/** A run of a command, and all that is known of it. */
interface Commanded {
  history: History;
  commands: Commands;
  run: RunRow;
  /** In the order in which they began. */
  executions: readonly Execution[];
  calls: readonly WorkerCall[];
  /** Which worker was given which attempt. */
  claims: ReadonlyMap<number, WorkerCall>;
  report: Report;
}

/** Commands of a run do not run beside each other, nor longer than their workers; none is lost; runs end as their commands did; logs are whole. */
export function checkCommands(history: History, timelines: Map<string, Timeline>, report: Report): void {
  const { commands, dump } = history;
  if (commands === null) return;
  const executions = grouped(commands.executions, ({ runId }) => runId);
  const calls = grouped(commands.calls, ({ runId }) => runId);
  const given = new Map<string, Map<number, WorkerCall>>();
  for (const claim of commands.calls)
    for (const { runId, attempt } of claim.given ?? [])
      given.set(runId, (given.get(runId) ?? new Map<number, WorkerCall>()).set(attempt, claim));
  const known = new Set(dump.runs.map(({ id }) => id));
  for (const id of executions.keys())
    if (!known.has(id)) report.add('phantom', `a command of ${id}, which there is not`);
  for (const run of dump.runs.filter((one) => isOfCommands(timelines.get(one.scheduleUid)))) {
    const about = {
      history,
      commands,
      run,
      report,
      claims: given.get(run.id) ?? new Map<number, WorkerCall>(),
    };
    const commanded = { ...about, executions: executions.get(run.id) ?? [], calls: calls.get(run.id) ?? [] };
    checkExecutions(commanded, timelines.get(run.scheduleUid));
    checkLeases(commanded);
    checkEnd(commanded, timelines.get(run.scheduleUid));
  }
  checkRunLogs(history, commands, report);
}

function checkExecutions(commanded: Commanded, timeline: Timeline | undefined): void {
  const { run, executions, report } = commanded;
  const span = spanOf(timeline, run);
  for (const [index, one] of executions.entries()) {
    const before = executions.slice(0, index);
    const text = `${nameOf(run)}: attempt ${one.attempt} began at ${isoText(one.beganAt)}`;
    if (before.some(({ attempt }) => attempt === one.attempt)) report.add('commandTwice', `${text}, twice`);
    if (span?.definition.delivery === 'atMostOnce' && index > 0) report.add('atMostOnceRepeat', text);
    if (span && span.marker !== one.marker) report.add('wrongBody', `${text}, of another version`);
    if (one.beganAt < run.scheduledFor) report.add('early', text);
    const endsBy = latestEnd(commanded, one);
    if (one.ended !== null && one.ended.at > endsBy)
      report.add('outlived', `${text}, ended at ${isoText(one.ended.at)}, and was to by ${isoText(endsBy)}`);
    if (!one.isBeside) continue;
    const others = before.filter(({ ended }) => ended === null || ended.at >= one.beganAt);
    if (!others.some((other) => one.beganAt <= latestEnd(commanded, other)))
      report.add('commandTwice', `${text}, beside ${others.map(({ attempt }) => attempt).join(', ')}`);
  }
}

/**
 * It ends with its worker, and when that hears that the run is not its own any more; what was stopped hears it later. Infinity: its worker
 * lives, and cannot know.
 */
function latestEnd({ history, commands, calls, claims }: Commanded, { attempt }: Execution): number {
  const { faults, graceSeconds } = commands;
  const claim = claims.get(attempt);
  const ofWorker = faults.filter(({ instance, to }) => instance === claim?.worker && to >= claim.answeredAt);
  const killedAt = ofWorker.filter(({ kind }) => kind === 'killWorker').map(({ from }) => from);
  const heardBy = (at: number) =>
    Math.max(
      at,
      ...ofWorker.filter(({ kind, from, to }) => kind === 'freezeWorker' && from <= at && to >= at).map(({ to }) => to),
    );
  const toldAt = calls
    .filter((call) => call.attempt === attempt && (call.status === 404 || call.status === 409))
    .map(({ heardAt = Infinity }) => heardBy(heardAt));
  const at = Math.min(Infinity, ...killedAt, ...toldAt);
  return at + graceSeconds * 1000 + ENDS_WITHIN_MS + slackOf(history, at, ENDS_WITHIN_MS);
}

/** A run is given to the next one only when its lease has run out, or its worker has given it back. */
function checkLeases({ commands, run, calls, claims, report }: Commanded): void {
  const given = [...claims].sort(([a], [b]) => a - b);
  for (const [index, [attempt, next]] of given.entries()) {
    const before = given[index - 1];
    if (before === undefined) continue;
    const own = calls.filter((call) => call.attempt === before[0]);
    const hasLeft = own.some(
      ({ action, askedAt }) => (action === 'complete' || action === 'release') && askedAt <= next.answeredAt,
    );
    // A claim may have waited for long before there was something to give.
    const since = Math.max(before[1].askedAt, run.createdAt);
    const signs = own
      .filter(({ action, isHeld }) => action === 'heartbeat' && isHeld === true)
      .map(({ askedAt }) => askedAt);
    const until = Math.max(since, ...signs) + commands.leaseSeconds * 1000;
    if (!hasLeft && next.answeredAt < until)
      report.add(
        'lease',
        `${nameOf(run)}: attempt ${attempt} at ${isoText(next.answeredAt)}, that before it had until ${isoText(until)}`,
      );
  }
}

function checkEnd({ history, run, executions, calls, report }: Commanded, timeline: Timeline | undefined): void {
  const end = executions.find(({ attempt }) => attempt === run.attempts)?.ended ?? null;
  const definition = spanOf(timeline, run)?.definition;
  const words = calls.filter(({ action, status }) => action === 'complete' && status === 200);
  for (const { word, attempt } of words)
    if (word !== 'later' && word !== run.status)
      report.add(
        'missedAccept',
        `${nameOf(run)}: attempt ${attempt} was reported as ${word ?? ''}, the run is ${run.status}`,
      );
  switch (run.status) {
    case 'running':
      report.add('stuck', `${nameOf(run)} is running, attempt ${run.attempts}`);
      return;
    case 'pending':
    case 'waiting':
      return;
    case 'succeeded':
      if (end?.code !== 0)
        report.add('falseAccept', `${nameOf(run)}: its command ended with ${end?.code ?? 'nothing'}`);
      return;
    case 'failed': {
      // What its worker ended, or called a failure for now, is not done again where it may have been done.
      const isFinal =
        definition?.delivery === 'atMostOnce' ? end?.code !== 0 : end !== null && ![0, EX_TEMPFAIL].includes(end.code);
      if (!isFinal && run.failures < (definition?.maxAttempts ?? 0))
        report.add('wrongEnd', `${nameOf(run)} failed: its command ended with ${end?.code ?? 'nothing'}`);
      return;
    }
    default: {
      const fault = faultOfEnd(history, timeline, run, []);
      if (fault !== null) report.add('wrongEnd', `${nameOf(run)} is ${run.status} ${run.reason ?? ''}: ${fault}`);
    }
  }
}

/** A worker waits so long with its report until its log has gone out. */
const LOG_WITHIN_MS = 10_000;
/** Of a log that is longer, somewhat less than what is kept of its beginning, and of its end. */
const [HEAD_BYTES, TAIL_BYTES] = [192 * 1024, 700 * 1024];
/** The code of a command that was ended in the middle of a line, as often as not. */
const TERMINATED = 143;
/** A worker whose daemon is away keeps so much of what is printed. */
const WAITING_BYTES = 256 * 1024;

/**
 * Each attempt's log says what its command has printed, in order. What was acknowledged is there, but for the middle of a long one; of a
 * short one nothing is left out; and if its worker reported soon after the end, all of it is there.
 */
function checkRunLogs(history: History, { logs, calls, executions }: Commands, report: Report): void {
  const callsOf = grouped(calls, ({ runId, attempt }) => `${runId ?? ''} ${attempt}`);
  const executionOf = new Map(executions.map((one) => [`${one.runId} ${one.attempt}`, one]));
  for (const log of logs) {
    const name = `${log.runId} ${log.attempt}`;
    const about = { log, own: callsOf.get(name) ?? [], execution: executionOf.get(name) };
    for (const fault of faultsOf(history, about))
      report.add('runLog', `${log.runId}, attempt ${log.attempt}: ${fault}`);
  }
}

interface Logged {
  log: LogRead;
  own: readonly WorkerCall[];
  execution: Execution | undefined;
}

function faultsOf(history: History, { log, own, execution }: Logged): string[] {
  const { parts, fault } = log;
  const faults = fault === null ? [] : [fault];
  const last = parts.at(-1);
  const end = last === undefined ? 0 : last.offset + last.bytes;
  const appended = own.flatMap(({ action, status, offset = 0, bytes = 0 }) =>
    action === 'log' && status === 200 ? [{ from: offset, to: offset + bytes }] : [],
  );
  const acknowledged = Math.max(0, ...appended.map(({ to }) => to));
  if (end < acknowledged) faults.push(`ends at ${end}, and ${acknowledged} bytes were acknowledged`);
  let at = 0;
  for (const { offset, bytes } of parts) {
    const gap = { from: at, to: offset };
    if (gap.from < gap.to && !mayBeLeftOut(gap, end, appended)) faults.push(`lacks ${gap.from} to ${gap.to} of ${end}`);
    at = offset + bytes;
  }
  const ended = execution?.ended;
  const isReportedSoon = own.some(
    ({ action, status, askedAt }) =>
      action === 'complete' &&
      status === 200 &&
      askedAt < (ended?.at ?? 0) + LOG_WITHIN_MS - slackOf(history, askedAt, 1_000),
  );
  if (ended && ended.code !== TERMINATED && isReportedSoon && end !== ended.bytes)
    faults.push(`has ${end} of ${ended.bytes} bytes`);
  return faults;
}

interface Gap {
  from: number;
  to: number;
}

function mayBeLeftOut(gap: Gap, end: number, appended: readonly Gap[]): boolean {
  if (end <= WAITING_BYTES) return false;
  const isKept = ({ from, to }: Gap) => from < HEAD_BYTES || to > end - TAIL_BYTES;
  return !appended.some(({ from, to }) => {
    const lost = { from: Math.max(from, gap.from), to: Math.min(to, gap.to) };
    return lost.from < lost.to && isKept(lost);
  });
}
