import type { Definition, Edit, History, RunRow, VersionRow } from './history.ts';
import { type Report, isoText } from './violations.ts';

/** A schedule of one uid under one definition: fires in (from, to] are its. */
export interface Span {
  version: number;
  marker: string;
  definition: Definition;
  from: number;
  to: number;
}

export interface Timeline {
  spans: Span[];
  /** Every moment it should have fired, with the version that was in force. */
  expected: Map<number, Span>;
  /** Moments that jitter may have moved over an edit: fired under one of these versions, or not at all. */
  possible: Map<number, Span[]>;
  deletedAt: number | null;
}

/** Small differences between the moments that this machine's processes and the database read off the same clock. */
const SAME_MOMENT_MS = 50;

/**
 * What each schedule should have done, from what its client was told. The rows of versions only say at which moment a
 * known edit took effect, and which of the unacknowledged ones did; what it said is taken from the client's own log.
 */
export function timelinesOf(history: History, report: Report): Map<string, Timeline> {
  const byMarker = new Map(history.edits.flatMap((edit) => (edit.marker === null ? [] : [[edit.marker, edit]])));
  const timelines = new Map<string, Timeline>();
  for (const [uid, rows] of grouped(history.dump.versions, (row) => row.scheduleUid)) {
    const sorted = [...rows].sort((a, b) => a.version - b.version);
    timelines.set(uid, timelineOf(sorted, byMarker, history.dump.at, report));
  }
  checkAcknowledged(history, report);
  return timelines;
}

/** The span whose definition planned a run at this moment, if any. */
export function spanOf(timeline: Timeline | undefined, run: Pick<RunRow, 'scheduleVersion'>): Span | undefined {
  return timeline?.spans.find(({ version }) => version === run.scheduleVersion);
}

/** Whether its runs are for workers, and no receiver sees them. The load never changes that. */
export function isOfCommands(timeline: Timeline | undefined): boolean {
  return timeline?.spans.some(({ definition }) => definition.command !== null) ?? false;
}

export function grouped<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

function timelineOf(
  rows: readonly VersionRow[],
  byMarker: ReadonlyMap<string, Edit>,
  end: number,
  report: Report,
): Timeline {
  const timeline: Timeline = { spans: [], expected: new Map(), possible: new Map(), deletedAt: null };
  const born = rows[0]?.at ?? NaN;
  for (const [index, row] of rows.entries()) {
    if (row.change === 'deleted') {
      timeline.deletedAt = row.at;
      continue;
    }
    const edit = byMarker.get(row.marker);
    if (!edit?.definition || !mayHaveMade(edit, row)) {
      report.add('edits', `version ${row.version} of ${row.scheduleId} at ${isoText(row.at)} belongs to no edit`);
      continue;
    }
    const to = rows[index + 1]?.at ?? end;
    const span = { version: row.version, marker: row.marker, definition: edit.definition, from: row.at, to };
    timeline.spans.push(span);
    if (edit.definition.enabled) addFires(timeline, span, born);
  }
  return timeline;
}

/** A fire belongs to the version in force when it is due: up to its jitter after its moment, but before the next one. */
function addFires({ expected, possible }: Timeline, span: Span, born: number): void {
  const { definition, from, to } = span;
  const jitterMs = definition.jitterSeconds * 1000;
  const moments = momentsOf(definition, born, from - jitterMs, to + jitterMs + 1);
  for (const [index, at] of moments.entries()) {
    if (at > to) break;
    const latestDue = Math.min(at + jitterMs, moments[index + 1] ?? Infinity);
    if (at > from && latestDue <= to) expected.set(at, span);
    else if (latestDue > from) possible.set(at, [...(possible.get(at) ?? []), span]);
  }
}

function momentsOf({ cron, everySeconds }: Definition, born: number, after: number, until: number): number[] {
  if (cron !== null) return occurrences(cron, after, until);
  return intervals(born, everySeconds ?? NaN, after, until);
}

function mayHaveMade(edit: Edit, row: VersionRow): boolean {
  return edit.scheduleId === row.scheduleId && edit.outcome !== 'refused' && isWithin(edit, row.at);
}

/** An acknowledged edit happened between its question and its answer; any other at any time after its question. */
function isWithin(edit: Edit, at: number): boolean {
  const latest = edit.outcome === 'acked' ? edit.endedAt + SAME_MOMENT_MS : Infinity;
  return at >= edit.sentAt - SAME_MOMENT_MS && at <= latest;
}

function checkAcknowledged({ edits, dump }: History, report: Report): void {
  const made = new Set(dump.versions.filter(({ change }) => change !== 'deleted').map(({ marker }) => marker));
  const deletions = dump.versions.filter(({ change }) => change === 'deleted');
  const deletes = edits.filter(({ kind, outcome }) => kind === 'delete' && outcome !== 'refused');
  for (const edit of edits) {
    if (edit.outcome !== 'acked') continue;
    const there =
      edit.kind === 'put'
        ? made.has(edit.marker ?? '')
        : deletions.some(({ scheduleId, at }) => scheduleId === edit.scheduleId && isWithin(edit, at));
    if (!there) {
      report.add('edits', `the ${edit.kind} of ${edit.scheduleId} acknowledged at ${isoText(edit.endedAt)} is gone`);
    }
  }
  for (const { scheduleId, at } of deletions) {
    if (!deletes.some((edit) => edit.scheduleId === scheduleId && isWithin(edit, at))) {
      report.add('edits', `${scheduleId} was deleted at ${isoText(at)}, and no call asked for it`);
    }
  }
}

/**
 * When a cron expression fires in UTC, by trying every second: slow, and nothing of the daemon's own calendar. Knows
 * six fields (or five) whose first three are stars, numbers or a star with a step; the rest must be stars, for that is all the load uses.
 */
export function occurrences(cron: string, after: number, until: number): number[] {
  const matches = matcher(cron);
  const found: number[] = [];
  for (let at = (Math.floor(after / 1000) + 1) * 1000; at <= until; at += 1000) {
    if (matches(at)) found.push(at);
  }
  return found;
}

/** After one moment and up to another: the anchor and every so many seconds from there. */
export function intervals(anchor: number, everySeconds: number, after: number, until: number): number[] {
  const found: number[] = [];
  for (let at = anchor; at <= until; at += everySeconds * 1000) if (at > after) found.push(at);
  return found;
}

function matcher(cron: string): (at: number) => boolean {
  const given = cron.split(' ');
  const fields = given.length === 5 ? ['0', ...given] : given;
  const [second = '', minute = '', hour = '', ...days] = fields;
  if (days.length !== 3 || days.some((field) => field !== '*')) throw new Error(`the oracle cannot read ${cron}`);
  const tests = [second, minute, hour].map(fieldTest);
  return (at) => {
    const date = new Date(at);
    const values = [date.getUTCSeconds(), date.getUTCMinutes(), date.getUTCHours()];
    return tests.every((test, index) => test(values[index] ?? -1));
  };
}

function fieldTest(field: string): (value: number) => boolean {
  if (field === '*') return () => true;
  const step = /^\*\/(\d+)$/.exec(field)?.[1];
  if (step !== undefined) return (value) => value % Number(step) === 0;
  if (!/^\d+$/.test(field)) throw new Error(`the oracle cannot read ${field}`);
  return (value) => value === Number(field);
}
