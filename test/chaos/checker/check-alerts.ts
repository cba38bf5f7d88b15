import type { AlertRow, History, MessageRow, RunRow, VersionRow } from './history.ts';
import { GATHER_MS, SLACK_MS, checkMessages, checkSeparate } from './check-messages.ts';
import { FAILING, replayEpisodes } from './replay-episodes.ts';
import { grouped } from './timeline.ts';
import { type Report, isoText } from './violations.ts';

/** Clocks of instances may be a little ahead of the database's when they tell when a run ended. */
const CLOCKS_MS = 50;

/**
 * Each episode has a cause, and an end that something justifies; its notifier was told of what the state machine makes of what happened
 * (`check-messages.ts`), and each message arrived under its id. Nothing is checked where no notifier was made.
 */
export function checkAlerts(history: History, report: Report): void {
  const { dump, notices, notifier } = history;
  if (notifier === null) return;
  const stops = stopsOf(history);
  const runs = new Map(dump.runs.map((run) => [run.id, run]));
  const successes = grouped(
    dump.runs.filter(({ status }) => status === 'succeeded'),
    ({ scheduleUid }) => scheduleUid,
  );
  const told = new Map<string, MessageRow[]>();
  for (const message of dump.messages)
    for (const id of message.alertIds) told.set(id, [...(told.get(id) ?? []), message]);
  const arrivedAt = firstArrivals(history);
  const replayed = new Map(
    [...new Set(dump.alerts.map(({ scheduleUid }) => scheduleUid))].map((uid) => [
      uid,
      replayOf(history, uid, stops),
    ]),
  );
  for (const alert of dump.alerts) {
    const say = (what: string) =>
      report.add('alerts', `${alert.kind} of ${alert.scheduleId} since ${isoText(alert.since)} ${what}`);
    checkCause(alert, alert.runId === null ? undefined : runs.get(alert.runId), say);
    const byPerson = closedByPerson(alert, stops);
    const isHealed = (successes.get(alert.scheduleUid) ?? []).some((run) => heals(run, alert));
    if (alert.kind === 'failed' && alert.until !== null && !byPerson && !isHealed)
      say('was closed without a success');
    const all = replayed.get(alert.scheduleUid) ?? [];
    if (alert.kind === 'failed' && alert.until === null && all.at(-1)?.event !== 'opened')
      say('is open although what broke it is over');
    const isIn = (at: number) =>
      at >= alert.since - CLOCKS_MS && at <= (alert.until ?? Infinity) + (byPerson ? EDIT_MS : CLOCKS_MS);
    const transitions = all.filter(({ at }) => isIn(at));
    const wasOver = wasOverBetween(alert, successes.get(alert.scheduleUid) ?? [], stops);
    const heard = { messages: told.get(alert.id) ?? [], arrivedAt, transitions, byPerson, wasOver };
    checkMessages(alert, heard, { endedAt: dump.at, say });
  }
  checkSeparate(dump.alerts, report);
  const arrived = new Set(notices.map(({ messageId }) => messageId));
  for (const { runId } of dump.messages.filter(({ status }) => status === 'cancelled'))
    if (arrivedAt.has(runId)) report.add('alerts', `message ${runId} was replaced, and arrived`);
  // What was cancelled was replaced: the state had changed before any try of it may have arrived.
  const isDone = ({ status, createdAt }: MessageRow) =>
    status !== 'cancelled' && createdAt + GATHER_MS + SLACK_MS < dump.at;
  for (const { runId, status } of dump.messages.filter(isDone)) {
    if (status !== 'succeeded') report.add('alerts', `message ${runId} ended as ${status ?? 'nothing'}`);
    else if (!arrived.has(runId)) report.add('alerts', `message ${runId} succeeded and never arrived`);
  }
  const recorded = new Set(dump.messages.map(({ runId }) => runId));
  for (const { messageId } of notices)
    if (!recorded.has(messageId)) report.add('alerts', `message ${messageId} arrived and is not recorded`);
  checkMissed(dump, stops, report);
}

function replayOf({ dump }: History, uid: string, stops: readonly VersionRow[]) {
  const isOwn = ({ scheduleUid }: { scheduleUid: string }) => scheduleUid === uid;
  const runs = dump.runs.filter(isOwn);
  const ids = new Set(runs.map(({ id }) => id));
  const attempts = dump.attempts.filter(({ runId }) => ids.has(runId));
  return replayEpisodes({ runs, attempts, versions: dump.versions.filter(isOwn), stops });
}

function checkCause({ kind, runId }: AlertRow, run: RunRow | undefined, say: (what: string) => void): void {
  if (kind !== 'failed') return;
  if (runId === null || run === undefined) say('has no run that opened it');
  // A late answer may have settled an unknown run since.
  else if (!FAILING.includes(run.status) && run.status !== 'succeeded')
    say(`was opened by a run that is ${run.status}`);
}

function firstArrivals({ notices }: History): Map<string, number> {
  const first = new Map<string, number>();
  for (const { messageId, at, delivered } of notices)
    if (delivered) first.set(messageId, Math.min(at, first.get(messageId) ?? at));
  return first;
}

/** A pause or a deletion at that moment closes without a word. */
function closedByPerson({ scheduleUid, until }: AlertRow, stops: readonly VersionRow[]): boolean {
  return stops.some(
    (stop) => stop.scheduleUid === scheduleUid && until !== null && Math.abs(stop.at - until) <= EDIT_MS,
  );
}

/** The versions that pause or delete a schedule. */
function stopsOf({ edits, dump }: History): VersionRow[] {
  const pauses = new Set(
    edits.flatMap(({ marker, definition }) => (definition?.enabled === false ? [marker] : [])),
  );
  return dump.versions.filter(({ change, marker }) => change === 'deleted' || pauses.has(marker));
}

function wasOverBetween(
  { scheduleUid, since, until }: AlertRow,
  successes: readonly RunRow[],
  stops: readonly VersionRow[],
): boolean {
  const ends = [
    ...successes.flatMap(({ finishedAt }) => finishedAt ?? []),
    ...stops.flatMap((stop) => (stop.scheduleUid === scheduleUid ? [stop.at] : [])),
  ];
  return ends.some((at) => at >= since - CLOCKS_MS && at < (until ?? Infinity) - EDIT_MS);
}

/** Between a version and what its commit closes, for a busy database. */
const EDIT_MS = 2_000;

function heals({ finishedAt }: RunRow, { since, until }: AlertRow): boolean {
  return (
    finishedAt !== null && finishedAt >= since - CLOCKS_MS && finishedAt <= (until ?? Infinity) + CLOCKS_MS
  );
}

/** A failure of a schedule that was not paused, that no success, pause or deletion followed, and no episode tells of. */
function checkMissed(
  { runs, alerts, versions }: History['dump'],
  stops: readonly VersionRow[],
  report: Report,
): void {
  const ofSchedule = grouped(
    alerts.filter(({ kind }) => kind === 'failed'),
    ({ scheduleUid }) => scheduleUid,
  );
  const endings = grouped(runs, ({ scheduleUid }) => scheduleUid);
  const stopped = grouped(stops, ({ scheduleUid }) => scheduleUid);
  const edited = grouped(versions, ({ scheduleUid }) => scheduleUid);
  for (const run of runs) {
    const { finishedAt: at, scheduleUid, status, reason } = run;
    if (at === null || !FAILING.includes(status) || reason === 'deleted') continue;
    const isTold = (ofSchedule.get(scheduleUid) ?? []).some(
      ({ since, until }) => since <= at + CLOCKS_MS && (until ?? Infinity) >= at - CLOCKS_MS,
    );
    const isAnswered =
      (endings.get(scheduleUid) ?? []).some(
        (other) => other.status === 'succeeded' && (other.finishedAt ?? -Infinity) >= at - CLOCKS_MS,
      ) ||
      (stopped.get(scheduleUid) ?? []).some((stop) => stop.at >= at - EDIT_MS) ||
      stops.some((stop) => stop === versionAt(at, edited.get(scheduleUid)));
    if (!isTold && !isAnswered)
      report.add('alerts', `run ${run.id} of ${run.scheduleId} is ${status}, and no episode tells of it`);
  }
}

/** The newest version up to a moment: the definition at that time. */
function versionAt(moment: number, versions: readonly VersionRow[] = []): VersionRow | undefined {
  return versions.filter(({ at }) => at <= moment).sort((a, b) => b.version - a.version)[0];
}
