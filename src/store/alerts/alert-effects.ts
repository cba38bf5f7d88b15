import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import type { Instant } from '../../core/instant.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import { instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';

/** Something broke, or is healed: an episode opens, or is over. */
export interface AlertCause {
  kind: 'breaks' | 'heals';
  alertKind: AlertKind;
  schedule: { uid: string; id: string; version: number };
  /** The run that it is about; null: about none. */
  runId: string | null;
  status: RunStatus | 'late';
  /** When it broke or was healed. What heals an episode must come after everything that broke it. */
  at: Instant;
}

/** Writes these as effects, in the transaction of what causes them: the effects loop opens and closes the episodes. Answers how many. */
export async function writeAlertEffects(tx: Transaction, causes: readonly AlertCause[]): Promise<number> {
  if (causes.length === 0) return 0;
  const schedules = causes.map(({ schedule }) => schedule);
  await tx.execute(sql`-- writeAlertEffects
    INSERT INTO effects (kind, alert_kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT c.kind, c.alert_kind, c.run_id, c.uid, c.version, c.id, 'schedule', c.status, c.at, 0
    FROM unnest(${texts(causes.map(({ kind }) => kind))}, ${texts(causes.map(({ alertKind }) => alertKind))},
      ${uuids(causes.map(({ runId }) => runId))}, ${uuids(schedules.map(({ uid }) => uid))},
      ${ints(schedules.map(({ version }) => version))}, ${texts(schedules.map(({ id }) => id))},
      ${texts(causes.map(({ status }) => status))}, ${instants(causes.map(({ at }) => at))})
      AS c(kind, alert_kind, run_id, uid, version, id, status, at)`);
  return causes.length;
}
