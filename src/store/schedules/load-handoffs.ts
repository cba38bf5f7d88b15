import { sql } from 'drizzle-orm';
import type { Handoff } from '../../core/schedules/schedule.ts';
import { ints, uuids } from '../../postgres/sql/arrays.ts';
import {
  type StoredDefinition,
  canBeHandedOff,
  readHandoff,
} from '../../core/schedules/stored-definition.ts';
import type { Executor } from '../../postgres/executor.ts';
import { queryPrepared } from '../../postgres/sql/rows.ts';

export interface VersionKey {
  scheduleUid: string;
  scheduleVersion: number;
}

/**
 * What the named versions say about handing off, keyed by versionKey(). Versions never change, so callers may keep them.
 * A version that cannot be read is left out, like one that is missing.
 */
export async function loadHandoffs(db: Executor, keys: readonly VersionKey[]): Promise<Map<string, Handoff>> {
  const rows = await queryPrepared<{
    schedule_uid: string;
    version: number;
    definition: StoredDefinition;
    payload: string | null;
  }>(
    db,
    sql`SELECT v.schedule_uid, v.version, v.definition, v.payload FROM schedule_versions v
    JOIN unnest(${uuids(keys.map((key) => key.scheduleUid))}, ${ints(keys.map((key) => key.scheduleVersion))})
      AS k(uid, version) ON v.schedule_uid = k.uid AND v.version = k.version`,
  );
  return new Map(
    rows
      .filter((row) => canBeHandedOff(row.definition))
      .map(({ schedule_uid, version, definition, payload }) => [
        versionKey({ scheduleUid: schedule_uid, scheduleVersion: version }),
        readHandoff(definition, payload),
      ]),
  );
}

export function versionKey(key: VersionKey): string {
  return `${key.scheduleUid}/${key.scheduleVersion}`;
}
