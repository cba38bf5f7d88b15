import type { AlertRow, AttemptRow, History, MessageRow, RunRow, VersionRow } from './history.ts';
import { grouped } from './timeline.ts';
import { type Report, isoText } from './violations.ts';
import { type Cause, type Known, alertChanges } from '../../../src/core/alerts/episode.ts';

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
    [...new Set(dump.alerts.map(({ scheduleUid }) => scheduleUid))].map((uid) => [uid, replayOf(history, uid, stops)]),
  );
  for (const alert of dump.alerts) {
    const say = (what: string) =>
      report.add('alerts', `${alert.kind} of ${alert.scheduleId} since ${isoText(alert.since)} ${what}`);
    checkCause(alert, alert.runId === null ? undefined : runs.get(alert.runId), say);
    const byPerson = closedByPerson(alert, stops);
    const isHealed = (successes.get(alert.scheduleUid) ?? []).some((run) => heals(run, alert));
    if (alert.kind === 'failed' && alert.until !== null && !byPerson && !isHealed) say('was closed without a success');
    const all = replayed.get(alert.scheduleUid) ?? [];
    if (alert.kind === 'failed' && alert.until === null && all.at(-1)?.event !== 'opened')
      say('is open although what broke it is over');
    const isIn = (at: number) =>
      at >= alert.since - CLOCKS_MS && at <= (alert.until ?? Infinity) + (byPerson ? EDIT_MS : CLOCKS_MS);
    // Effects come in any order: a later failure of the same stretch may be the first that is heard of.
    const before = all.findLast(({ at }) => at < alert.since - CLOCKS_MS);
    const transitions = [...(before?.event === 'opened' ? [before] : []), ...all.filter(({ at }) => isIn(at))];
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
  const pauses = new Set(edits.flatMap(({ marker, definition }) => (definition?.enabled === false ? [marker] : [])));
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
  return finishedAt !== null && finishedAt >= since - CLOCKS_MS && finishedAt <= (until ?? Infinity) + CLOCKS_MS;
}

/** A failure of a schedule that was not paused, that no success, pause or deletion followed, and no episode tells of. */
function checkMissed({ runs, alerts, versions }: History['dump'], stops: readonly VersionRow[], report: Report): void {
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

/** An episode that opens again within this time of its end is the same one, of which a notifier then hears once in this time at most. */
const FLAP_MS = 300_000;
/** What opens or heals within this time is told in one message. */
const GATHER_MS = 10_000;
/** From a moment at which something is to be told to the message, on a busy machine. */
const SLACK_MS = 30_000;

interface Heard {
  /** What was recorded for its notifier, replaced ones too. */
  messages: readonly MessageRow[];
  arrivedAt: ReadonlyMap<string, number>;
  /** What the state machine makes of this episode. */
  transitions: readonly Transition[];
  /** A person closed it: without a word. */
  byPerson: boolean;
  /** It was over in between, and opened again. */
  wasOver: boolean;
}

/**
 * Its notifier hears of each opening and each end at most once, no opening overtakes an end nor an end an opening, and the last word is
 * how it stands. Where it opened again it hears nothing for five minutes after that, and after each further message.
 */
function checkMessages(
  { kind, until }: AlertRow,
  { messages, arrivedAt, transitions, byPerson, wasOver }: Heard,
  { endedAt, say }: { endedAt: number; say: (what: string) => void },
): void {
  const sent = messages
    .filter(({ status, event }) => status !== 'cancelled' && (event === 'opened' || event === 'recovered'))
    .sort((a, b) => a.createdAt - b.createdAt);
  const count = (event: Transition['event'], told: MessageRow['event']) => {
    const known = kind === 'failed' ? transitions.filter((one) => one.event === event).length : Infinity;
    const most = wasOver ? known : 1;
    return { most, told: sent.filter((one) => one.event === told).length };
  };
  const [opened, over] = [count('opened', 'opened'), count('closed', 'recovered')];
  if (opened.told > opened.most) say(`was told ${opened.told} times, and opened ${opened.most} times`);
  if (over.told > (wasOver || until !== null ? over.most : 0)) say(`was told ${over.told} times to be over`);
  sent.forEach((message, index) => {
    const next = sent[index + 1];
    if (!next) return;
    // The word that it was over may have been taken back, as it had opened again before that word was sent.
    const [first, second] = [message, next].map(({ runId }) => arrivedAt.get(runId) ?? Infinity);
    const isOver =
      kind === 'failed'
        ? transitions.some((one) => one.event === 'closed' && isBetween(one.at, message, second))
        : wasOver;
    if (message.event === 'opened' && next.event === 'opened' && !isOver) say('was told twice in a row');
    const isOtherWord = message.event !== next.event;
    if (isOtherWord && first !== undefined && second !== undefined && second < first && first < Infinity)
      say(`was told to be ${next.event} before it was told to be ${message.event}`);
    const isHeld = sent.slice(0, index).some(({ event }) => event === 'recovered');
    if (isHeld && next.createdAt - message.createdAt < FLAP_MS - GATHER_MS)
      say('was told twice in five minutes, after it had opened again');
  });
  const last = sent.at(-1);
  const mayBeHeld = wasOver && last !== undefined && last.createdAt + FLAP_MS + SLACK_MS > endedAt;
  if (byPerson || mayBeHeld) return;
  if (last?.event !== (until === null ? 'opened' : 'recovered'))
    say(
      last === undefined ? 'was never told' : `is ${until === null ? 'open' : 'over'}, and was last told ${last.event}`,
    );
}

/** Until a message arrived: while it gathers, it is told of more than there was when it was recorded. */
function isBetween(at: number, message: MessageRow, arrivedAt = Infinity): boolean {
  return at >= message.createdAt - SLACK_MS && at <= arrivedAt + CLOCKS_MS;
}

/** Two episodes of failures are further apart: else the second one is the first, which opens again. */
export function checkSeparate(alerts: readonly AlertRow[], report: Report): void {
  const failed = alerts.filter(({ kind }) => kind === 'failed');
  for (const all of grouped(failed, ({ scheduleUid }) => scheduleUid).values()) {
    const sorted = [...all].sort((a, b) => a.since - b.since);
    sorted.forEach(({ kind, scheduleId, until }, index) => {
      const next = sorted[index + 1];
      if (next && (until === null || next.since < until + FLAP_MS - CLOCKS_MS))
        report.add(
          'alerts',
          `${kind} of ${scheduleId} since ${isoText(next.since)} is a new episode, and opened again`,
        );
    });
  }
}

/** What becomes of the one kind of episode that the ends of runs say all about. */
interface Transition {
  event: 'opened' | 'closed';
  at: number;
}

interface Facts {
  runs: readonly RunRow[];
  attempts: readonly AttemptRow[];
  /** All of the schedule, and those that pause or delete it. */
  versions: readonly VersionRow[];
  stops: readonly VersionRow[];
}

const FAILING = ['failed', 'unknown', 'abandoned'];

/**
 * What the state machine makes of what is known of a schedule, told to it in the order in which it happened: no order of effects makes more
 * of it. It is firelock's own, the only part that the checker shares: it has mutants and random orders of its own.
 */
function replayEpisodes(facts: Facts): Transition[] {
  const found: Transition[] = [];
  let known: Known = {
    ...{ isEnabled: true, isPausedByFirelock: false, resumedAt: null, isOver: false, lastFireAt: null },
    ...{
      error: null,
      lateSince: null,
      expect: null,
      calendar: null,
      wellAt: new Map(),
      open: new Map(),
      over: new Map(),
    },
  };
  for (const { at, what } of eventsOf(facts)) {
    if (what === 'stops' || what === 'goesOn') {
      const isEnabled = what === 'goesOn';
      known = { ...known, isEnabled, resumedAt: isEnabled && !known.isEnabled ? at : known.resumedAt };
    }
    if (what === 'heals') known = { ...known, wellAt: new Map([['failed', at]]) };
    const causes: Cause[] = what === 'breaks' ? [{ ...BREAKS, at }] : [];
    const { opened, brokenAgain, closed } = alertChanges(known, causes, at);
    for (const { brokenAt, failures } of [...opened, ...brokenAgain])
      known = { ...known, open: new Map([['failed', { id: 'failed', brokenAt, failures }]]) };
    if (closed.length > 0) known = { ...known, open: new Map() };
    found.push(...opened.map((): Transition => ({ event: 'opened', at })));
    found.push(...closed.map((): Transition => ({ event: 'closed', at })));
  }
  return found;
}

const BREAKS = { kind: 'breaks', alertKind: 'failed', runId: null, count: 0 } as const;

function eventsOf({ runs, attempts, versions, stops }: Facts) {
  const settledLate = new Set(runs.flatMap(({ id, status }) => (status === 'succeeded' ? [id] : [])));
  return [
    ...runs.flatMap(({ status, finishedAt: at }) => {
      if (at === null) return [];
      if (status === 'succeeded') return [{ at, what: 'heals' }];
      return FAILING.includes(status) ? [{ at, what: 'breaks' }] : [];
    }),
    // A late answer settled an unknown run, which had opened one.
    ...attempts.flatMap(({ runId, outcome, finishedAt: at }) =>
      settledLate.has(runId) && outcome === 'unknown' ? [{ at, what: 'breaks' }] : [],
    ),
    ...versions.map((version) => ({ at: version.at, what: stops.includes(version) ? 'stops' : 'goesOn' })),
  ].sort((a, b) => a.at - b.at);
}
