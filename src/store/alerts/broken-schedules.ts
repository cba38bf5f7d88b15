import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import type { Known, OpenEpisode } from '../../core/alerts/episode.ts';
import type { BreakingRun, BrokenSchedule } from '../../core/alerts/what-is-wrong.ts';
import type { Instant } from '../../core/instant.ts';
import { BY_FIRELOCK } from '../../core/schedules/definition-change.ts';
import type { Expect } from '../../core/schedules/expect.ts';
import { instants, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';

/** A schedule whose row this transaction has locked, as its alerts need it. */
export interface BrokenScheduleRow extends Known, BrokenSchedule {
  uid: string;
  id: string;
  labels: Readonly<Record<string, string>>;
}

interface ScheduleRow {
  uid: string;
  id: string;
  enabled: boolean;
  by: string | null;
  error: string | null;
  labels: Record<string, string> | null;
  pause_reason: string | null;
  success_within: number | null;
  expect: Expect | null;
}

/** By uid. `failedAt`: of which a success after that moment is looked for. */
export async function readBrokenSchedules(
  tx: Transaction,
  uids: readonly string[],
  failedAt: ReadonlyMap<string, Instant>,
): Promise<Map<string, BrokenScheduleRow>> {
  const rows = await rowsOf<ScheduleRow>(tx)(sql`-- readBrokenSchedules
    SELECT s.uid, s.id, s.enabled, v.by, s.error, v.definition->'labels' AS labels, v.definition->>'pauseReason' AS pause_reason,
      (v.definition->>'successWithinSeconds')::float8::int AS success_within, nullif(v.definition->'expect', 'null') AS expect
    FROM schedules s JOIN schedule_versions v ON v.schedule_uid = s.uid AND v.version = s.version
    WHERE s.uid = ANY (${uuids(uids)})`);
  const open = await openEpisodes(tx, uids);
  const successes = await newestSuccesses(tx, failedAt);
  return new Map(
    rows.map((row) => {
      const episodes = open.get(row.uid) ?? new Map<AlertKind, OpenEpisode>();
      return [
        row.uid,
        {
          uid: row.uid,
          id: row.id,
          labels: row.labels ?? {},
          isEnabled: row.enabled,
          isPausedByFirelock: !row.enabled && (row.by === BY_FIRELOCK || episodes.has('paused')),
          lastSuccessAt: successes.get(row.uid) ?? null,
          open: episodes,
          pauseReason: row.pause_reason,
          error: row.error,
          successWithinSeconds: row.success_within,
          expect: row.expect,
        },
      ];
    }),
  );
}

async function openEpisodes(
  tx: Transaction,
  uids: readonly string[],
): Promise<Map<string, Map<AlertKind, OpenEpisode>>> {
  const rows = await rowsOf<{ id: string; schedule_uid: string; kind: AlertKind; broken_at: InstantText }>(
    tx,
  )(sql`-- openEpisodes
    SELECT id, schedule_uid, kind, broken_at FROM alerts WHERE schedule_uid = ANY (${uuids(uids)}) AND until IS NULL`);
  const found = new Map<string, Map<AlertKind, OpenEpisode>>();
  for (const { id, schedule_uid, kind, broken_at } of rows) {
    const ofSchedule = found.get(schedule_uid) ?? new Map<AlertKind, OpenEpisode>();
    found.set(schedule_uid, ofSchedule.set(kind, { id, brokenAt: toInstant(broken_at) }));
  }
  return found;
}

/** Runs of a schedule, the newest by `scheduledFor`, among which a success is looked for. */
const LOOKED_AT = 50;

/**
 * When each of these schedules last succeeded since the given moment, as far as its newest runs tell. A success of an older run, which
 * ended after newer ones had failed, is not seen: then the next success ends the episode.
 */
export async function newestSuccesses(
  tx: Transaction,
  since: ReadonlyMap<string, Instant>,
): Promise<Map<string, Instant>> {
  if (since.size === 0) return new Map();
  const first = new Date(Math.min(...since.values())).toISOString();
  const rows = await rowsOf<{ uid: string; at: InstantText | null }>(tx)(sql`-- newestSuccesses
    SELECT u.uid, (SELECT max(h.finished_at) FROM (
        SELECT status, finished_at FROM history WHERE schedule_uid = u.uid AND ended_at >= ${first}
        ORDER BY id DESC LIMIT ${LOOKED_AT}) AS h WHERE h.status = 'succeeded' AND h.finished_at >= u.since) AS at
    FROM unnest(${uuids([...since.keys()])}, ${instants([...since.values()])}) AS u(uid, since)`);
  return new Map(
    rows.flatMap(({ uid, at }) => (at === null ? [] : [[uid, toInstant(at)] as [string, Instant]])),
  );
}

interface RunRow extends Omit<BreakingRun, 'scheduledFor' | 'coalescedFrom'> {
  id: string;
  scheduled_for: InstantText;
  coalesced_from: InstantText | null;
}

/** By id. */
export async function readBreakingRuns(
  tx: Transaction,
  ids: readonly string[],
): Promise<Map<string, BreakingRun>> {
  if (ids.length === 0) return new Map();
  const rows = await rowsOf<RunRow>(tx)(sql`-- readBreakingRuns
    SELECT id, status, reason, error, scheduled_for, coalesced_from FROM all_runs WHERE id = ANY (${uuids(ids)})`);
  return new Map(
    rows.map(({ id, scheduled_for, coalesced_from, ...run }) => [
      id,
      { ...run, scheduledFor: toInstant(scheduled_for), coalescedFrom: toInstantOrNull(coalesced_from) },
    ]),
  );
}
