import { sql } from 'drizzle-orm';
import type { LostRunFacts } from '../../../core/runs/lost-claim.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import { ints, uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';

/** What definitions and schedules say of runs, for the verdict on a lost claim. */
interface RunFacts {
  of(run: RunRecord): LostRunFacts;
}

/** Where a definition is not there, or says what none may: at least once, without a lookup, with the longest time limit. */
const UNKNOWN = { atMostOnce: false, hasLookup: false, timeoutSeconds: 3600 };

export async function loadRunFacts(db: Executor, runs: readonly RunRecord[]): Promise<RunFacts> {
  const uids = uuids(runs.map(({ scheduleUid }) => scheduleUid));
  const versions = await rowsOf<{ key: string; delivery: unknown; has_lookup: boolean; timeout: unknown }>(
    db,
  )(sql`-- loadRunFacts
    SELECT DISTINCT v.schedule_uid || '/' || v.version AS key, v.definition->'delivery' AS delivery,
      coalesce(jsonb_typeof(v.definition->'target'->'lookup') = 'object', false) AS has_lookup,
      v.definition->'timeoutSeconds' AS timeout
    FROM unnest(${uids}, ${ints(runs.map(({ scheduleVersion }) => scheduleVersion))}) AS k(uid, version)
    JOIN schedule_versions v ON v.schedule_uid = k.uid AND v.version = k.version`);
  const schedules = await rowsOf<{ uid: string; enabled: boolean }>(db)(sql`-- loadRunFacts
    SELECT uid, enabled FROM schedules WHERE uid = ANY (${uids})`);
  const enabled = new Map(schedules.map((row) => [row.uid, row.enabled]));
  const said = new Map(
    versions.map(({ key, delivery, has_lookup: hasLookup, timeout }) => [
      key,
      { atMostOnce: delivery === 'atMostOnce', hasLookup, timeoutSeconds: secondsOf(timeout) },
    ]),
  );
  return {
    of: ({ scheduleUid, scheduleVersion }) => {
      const isEnabled = enabled.get(scheduleUid);
      const facts = said.get(`${scheduleUid}/${scheduleVersion}`) ?? UNKNOWN;
      return { ...facts, schedule: isEnabled === undefined ? null : { enabled: isEnabled } };
    },
  };
}

/** Within what the API allows. */
function secondsOf(timeout: unknown): number {
  return typeof timeout === 'number' ? Math.min(3600, Math.max(1, timeout)) : UNKNOWN.timeoutSeconds;
}
