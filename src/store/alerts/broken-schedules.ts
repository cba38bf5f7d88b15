import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import { type Cause, type Known, type OpenEpisode, FLAP_SECONDS, soonerLook } from '../../core/alerts/episode.ts';
import type { BreakingRun, BrokenSchedule } from '../../core/alerts/what-is-wrong.ts';
import type { Instant } from '../../core/instant.ts';
import { judgeLateness, type OutcomeWatch } from '../../core/schedules/outcome-watch.ts';
import { BY_FIRELOCK } from '../../core/time/definition-change.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { ints, uuids } from '../../postgres/sql/arrays.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';
import { ENDS_SOON, isOver } from '../schedules/search/schedule-conditions.ts';
import { lastSuccesses, lockWatches } from '../schedules/watches.ts';
import { shownByRuns } from './shown-by-runs.ts';

/** A schedule whose row this transaction has locked, as its alerts need it. */
export interface BrokenScheduleRow extends Known, BrokenSchedule {
  uid: string;
  id: string;
  version: number;
  labels: Readonly<Record<string, string>>;
  nextFireAt: Instant | null;
  open: ReadonlyMap<AlertKind, OpenAlert>;
  /** As it is to be stored; null: it is not watched, or stays as it is. */
  watch: OutcomeWatch | null;
}

export interface OpenAlert extends OpenEpisode {
  since: Instant;
  lookAt: Instant | null;
}

type Found = 'isPausedByFirelock' | 'resumedAt' | 'lateSince' | 'wellAt' | 'open' | 'over' | 'watch' | 'labels';

/** What its own row says, and its version: by whom it was written, null by a caller without a name. */
interface ScheduleRow extends Omit<BrokenScheduleRow, Found> {
  by: string | null;
  labels: Record<string, string> | null;
}

/** A cause, and the version of the schedule that it is about. */
export type VersionedCause = Cause & { scheduleVersion: number };

/** All that decides about the episodes of these schedules, as it is at this moment. `causes`: by uid. */
export async function readBrokenSchedules(
  tx: Transaction,
  uids: readonly string[],
  causes: ReadonlyMap<string, readonly VersionedCause[]>,
  now: Instant,
): Promise<BrokenScheduleRow[]> {
  if (uids.length === 0) return [];
  const rows = await scheduleRows(tx, uids);
  const open = await openEpisodes(tx, uids);
  const broken = rows.map(({ uid, expect }) => ({
    ...{ uid, expect },
    brokenAt: newestBreaks(open.get(uid), causes.get(uid)),
  }));
  const shown = await shownByRuns(tx, broken);
  const resumed = await resumedAfter(tx, causes);
  const lateness = await readLateness(tx, rows, now);
  const ending = rows.flatMap(({ uid, calendar }) => (calendar === null ? [] : [{ uid, at: now }]));
  const over = await overEpisodes(tx, causes, lateness, ending);
  return rows.map((row): BrokenScheduleRow => {
    const { uid, isEnabled, by, ...known } = row;
    const { succeededAt, ...late } = lateness.get(uid) ?? NOT_WATCHED;
    const episodes = open.get(uid) ?? new Map<AlertKind, OpenAlert>();
    return {
      ...{ ...known, uid, isEnabled, ...late },
      labels: row.labels ?? {},
      isPausedByFirelock: !isEnabled && (by === BY_FIRELOCK || episodes.has('paused')),
      resumedAt: resumed.get(uid) ?? null,
      wellAt: new Map([...(shown.get(uid) ?? []), ...succeededAt]),
      open: episodes,
      over: over.get(uid) ?? new Map(),
    };
  });
}

async function scheduleRows(tx: Transaction, uids: readonly string[]): Promise<ScheduleRow[]> {
  return recordsOf<ScheduleRow>(tx)(sql`-- scheduleRows
    SELECT schedules.uid, schedules.id, schedules.version, schedules.enabled AS is_enabled, ${isOver} AND schedules.error IS NULL AS is_over,
      schedules.error, schedules.last_fire_at, schedules.next_fire_at, v.by, v.definition->'labels' AS labels,
      v.definition->>'pauseReason' AS pause_reason, (v.definition->>'successWithinSeconds')::float8::int AS success_within_seconds,
      nullif(v.definition->'expect', 'null') AS expect,
      (SELECT json_build_object('id', c.id, 'validUntil', c.valid_until) FROM calendars c
        WHERE c.id IN (SELECT jsonb_array_elements_text(coalesce(v.definition #> '{exclude,calendars}', '[]'))) AND ${ENDS_SOON}
        ORDER BY c.valid_until, c.id LIMIT 1) AS calendar
    FROM schedules JOIN schedule_versions v ON v.schedule_uid = schedules.uid AND v.version = schedules.version
    WHERE schedules.uid = ANY (${uuids(uids)})`);
}

/** By kind. */
function newestBreaks(
  open: ReadonlyMap<AlertKind, OpenEpisode> = new Map(),
  causes: readonly Cause[] = [],
): Map<AlertKind, Instant> {
  const newest = new Map([...open].map(([kind, { brokenAt }]) => [kind, brokenAt]));
  for (const { kind, alertKind, at } of causes)
    if (kind === 'breaks') newest.set(alertKind, Math.max(at, newest.get(alertKind) ?? at));
  return newest;
}

interface EpisodeOver {
  id: string;
  scheduleUid: string;
  kind: AlertKind;
  until: Instant;
}

interface Lateness {
  watch: OutcomeWatch | null;
  lateSince: Instant | null;
  /** Of a success that has not been counted yet. */
  succeededAt: readonly (readonly ['late', Instant])[];
}

const NOT_WATCHED: Lateness = { watch: null, lateSince: null, succeededAt: [] };

/** A success that is not visible under the lock of the schedule is written later, and is seen by the next look. */
async function readLateness(
  tx: Transaction,
  rows: readonly ScheduleRow[],
  now: Instant,
): Promise<Map<string, Lateness>> {
  const watched = rows.filter(({ successWithinSeconds }) => successWithinSeconds !== null);
  const watches = await lockWatches(
    tx,
    watched.map(({ uid }) => uid),
  );
  const successes = await lastSuccesses(tx, [...watches.values()]);
  return new Map(
    watched.flatMap(({ uid, isEnabled, isOver: hasEnded }) => {
      const known = watches.get(uid);
      if (!known) return [];
      const found = successes.get(uid) ?? null;
      const isNew = found !== null && found > (known.lastSuccessAt ?? -Infinity);
      const watch = isNew ? { ...known, lastSuccessAt: found } : known;
      const { lookAt: next, lateSince } = judgeLateness(watch, now, !isEnabled || hasEnded);
      const lookAt = soonerLook(known.lookAt, next, now);
      const isChanged = isNew || lookAt !== known.lookAt;
      const succeededAt: Lateness['succeededAt'] = isNew ? [['late', found]] : [];
      return [[uid, { watch: isChanged ? { ...watch, lookAt } : null, lateSince, succeededAt }]];
    }),
  );
}

/** By uid: when each was last enabled after a person had paused it, by a version later than what broke it. */
async function resumedAfter(
  tx: Transaction,
  causes: ReadonlyMap<string, readonly VersionedCause[]>,
): Promise<Map<string, Instant>> {
  const asked = [...causes].flatMap(([uid, of]) => {
    const breaks = of.filter(({ kind }) => kind === 'breaks');
    const version = Math.min(...breaks.map(({ scheduleVersion }) => scheduleVersion));
    return breaks.length === 0 ? [] : [{ uid, version }];
  });
  if (asked.length === 0) return new Map();
  const rows = await recordsOf<{ uid: string; at: Instant | null }>(tx)(sql`-- resumedAfter
    SELECT u.uid, (SELECT max(v.at) FROM schedule_versions v
        JOIN schedule_versions b ON b.schedule_uid = v.schedule_uid AND b.version = v.version - 1
      WHERE v.schedule_uid = u.uid AND v.version > u.version AND v.definition->>'enabled' = 'true'
        AND b.definition->>'enabled' = 'false' AND b.by IS DISTINCT FROM ${BY_FIRELOCK}) AS at
    FROM unnest(${uuids(asked.map(({ uid }) => uid))}, ${ints(asked.map(({ version }) => version))}) AS u(uid, version)`);
  return new Map(rows.flatMap(({ uid, at }) => (at === null ? [] : [[uid, at]])));
}

async function openEpisodes(tx: Transaction, uids: readonly string[]): Promise<Map<string, Map<AlertKind, OpenAlert>>> {
  const rows = await recordsOf<OpenAlert & { scheduleUid: string; kind: AlertKind }>(tx)(sql`-- openEpisodes
    SELECT id, schedule_uid, kind, since, broken_at, failures, look_at FROM alerts WHERE schedule_uid = ANY (${uuids(uids)}) AND until IS NULL`);
  const found = new Map<string, Map<AlertKind, OpenAlert>>();
  for (const { scheduleUid, kind, ...one } of rows)
    found.set(scheduleUid, (found.get(scheduleUid) ?? new Map<AlertKind, OpenAlert>()).set(kind, one));
  return found;
}

/** Those that may open again now, of schedules that broke, are late or whose calendars end. */
async function overEpisodes(
  tx: Transaction,
  causes: ReadonlyMap<string, readonly VersionedCause[]>,
  lateness: ReadonlyMap<string, Lateness>,
  ending: readonly { uid: string; at: Instant }[],
): Promise<Map<string, Known['over']>> {
  const broke = [...causes].flatMap(([uid, of]) =>
    of.flatMap(({ kind, at }) => (kind === 'breaks' ? [{ uid, at }] : [])),
  );
  const late = [...lateness].flatMap(([uid, { lateSince: at }]) => (at === null ? [] : [{ uid, at }]));
  const asked = [...broke, ...late, ...ending];
  if (asked.length === 0) return new Map();
  const first = asked.reduce((least, { at }) => Math.min(least, at), Infinity) - FLAP_SECONDS * 1000;
  const rows = await recordsOf<EpisodeOver>(tx)(sql`-- overEpisodes
    SELECT DISTINCT ON (schedule_uid, kind) id, schedule_uid, kind, until FROM alerts
    WHERE schedule_uid = ANY (${uuids([...new Set(asked.map(({ uid }) => uid))])})
      AND until IS NOT NULL AND until >= ${new Date(first).toISOString()} ORDER BY schedule_uid, kind, until DESC`);
  const found = Map.groupBy(rows, ({ scheduleUid }) => scheduleUid);
  return new Map([...found].map(([uid, of]) => [uid, new Map(of.map(({ id, kind, until }) => [kind, { id, until }]))]));
}

/** By id. */
export async function readBreakingRuns(tx: Transaction, ids: readonly string[]): Promise<Map<string, BreakingRun>> {
  if (ids.length === 0) return new Map();
  const rows = await recordsOf<BreakingRun & { id: string }>(tx)(sql`-- readBreakingRuns
    SELECT id, status, reason, error, unmet_reason, scheduled_for, coalesced_from FROM all_runs WHERE id = ANY (${uuids(ids)})`);
  return new Map(rows.map(({ id, ...run }) => [id, run]));
}
