/**
 * Guarantees: the coming days have a partition of history, and one of the audit, before they begin. Where one cannot be made, what
 *   belongs to that day stands in the default partition, and all works on; that one holds up no other.
 * Transaction: one for each day, sent as one message.
 * If the process dies here: the day has its partition or it has not; the next pass, on any instance, makes what is missing.
 */
import type { Instant } from '../core/instant.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { databaseNow } from '../postgres/sql/rows.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { isNotNow } from '../postgres/errors.ts';
import { DAYS_AHEAD, createPartition, missingPartitions } from '../postgres/history-partitions.ts';

const INTERVAL_MS = 600_000;

interface State extends LoopDeps {
  /** Monotonic: since when a partition could not be made; null: all could be. */
  failingSince: number | null;
  warnedAt: number | null;
}

export function createPartitionMaker(deps: LoopDeps): Loop {
  const { clock, events } = deps;
  const state: State = { ...deps, failingSince: null, warnedAt: null };
  return createLoop({ name: 'partitions', clock, body: () => pass(state), events });
}

async function pass(state: State): Promise<number> {
  const { database, events } = state;
  const now = await database.run(databaseNow);
  const missing = await database.run((db) => missingPartitions(db, now));
  const made = new Set<Instant>();
  const failed: { day: Instant; error: unknown }[] = [];
  // Each by itself: moving the runs of one day may take too long, and must not hold up the next day.
  for (const { parent, day } of missing) {
    try {
      await database.run((db) => createPartition(db, day, parent));
      made.add(day);
    } catch (error) {
      failed.push({ day, error });
      if (!isNotNow(error)) break;
    }
  }
  // Looked up, since another instance may have created a day that this one could not.
  const stillMissing = missing.length > 0 ? await database.run((db) => missingPartitions(db, now)) : [];
  const ahead = new Set(stillMissing.flatMap(({ day }) => (day > now ? [day] : [])));
  events.emit({ type: 'partitionsCounted', ahead: DAYS_AHEAD - ahead.size });
  const broken = failed.find(({ error }) => !isNotNow(error));
  if (broken) throw broken.error;
  events.emit({ type: 'partitionsCreated', days: [...made] });
  const [first] = failed;
  if (first) return delayed(state, first.day, first.error);
  state.failingSince = null;
  state.warnedAt = null;
  return INTERVAL_MS;
}

const HOUR_MS = 3_600_000;
const SOON_MS = 5_000;
const LATER_MS = 30_000;

/** A lock could not be taken. Answers how long to wait before the next try. */
function delayed(state: State, day: Instant, error: unknown): number {
  const now = state.clock.monotonic();
  const isFirst = state.failingSince === null;
  const since = (state.failingSince ??= now);
  const lasts = now - (state.warnedAt ?? since) >= HOUR_MS;
  if (lasts) state.warnedAt = now;
  state.events.emit({ type: 'historyDelayed', work: 'create', day, error, forMs: now - since, lasts });
  return isFirst ? SOON_MS : now - since < HOUR_MS ? LATER_MS : INTERVAL_MS;
}
