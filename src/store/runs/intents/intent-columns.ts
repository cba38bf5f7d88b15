import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../../core/instant.ts';
import type { RunTrigger } from '../../../core/runs/run.ts';
import { booleans, ints, milliseconds, texts, uuids } from '../../../postgres/sql/arrays.ts';
import type { Advance, Intent } from './intent.ts';

/** Of one fire in a batch, as its columns are called in the statement. */
export const FIRE_COLUMNS = sql`fire_id, scheduled_ms, trigger, due_ms, skipped, coalesced, coalesced_from_ms, claimed`;

export function columnsOf(fires: readonly (Intent | undefined)[]): SQL {
  return sql`${uuids(fires.map((fire) => fire?.id ?? null))}, ${milliseconds(fires.map((fire) => fire?.scheduledFor ?? null))},
    ${texts(fires.map((fire) => (!fire || fire.trigger === USUAL_TRIGGER ? null : fire.trigger)))},
    ${milliseconds(fires.map((fire) => (!fire || fire.dueAt === fire.scheduledFor ? null : fire.dueAt)))},
    ${texts(fires.map((fire) => fire?.skipped ?? null))}, ${ints(fires.map((fire) => (fire?.coalesced === 0 ? null : (fire?.coalesced ?? null))))},
    ${milliseconds(fires.map((fire) => fire?.coalescedFrom ?? null))}, ${booleans(fires.map((fire) => fire?.claimed ?? null))}`;
}

/** Fires beyond the first of a schedule, each with the place of its schedule in the batch, from 1. */
interface FurtherFires {
  places: number[];
  fires: Intent[];
}

/**
 * The first fire of each schedule, at its schedule's place, and those beyond. A schedule has one fire as a rule: it
 * travels in the row of its schedule. A join of fires and schedules would compare each with each, since the planner
 * expects the guard to let one row pass.
 */
export function byPlace(
  advances: readonly Advance[],
  intents: readonly Intent[],
): { firsts: (Intent | undefined)[]; further: FurtherFires | null } {
  const places = new Map(advances.map(({ uid }, index) => [uid, index]));
  const firsts = new Array<Intent | undefined>(advances.length).fill(undefined);
  const further: FurtherFires = { places: [], fires: [] };
  for (const intent of intents) {
    const place = places.get(intent.scheduleUid);
    if (place === undefined) continue;
    if (firsts[place] === undefined) {
      firsts[place] = intent;
    } else {
      further.places.push(place + 1);
      further.fires.push(intent);
    }
  }
  return { firsts, further: further.fires.length > 0 ? further : null };
}

/** `bounds`: further columns of their schedules. */
export function furtherFires({ places, fires }: FurtherFires, bounds: SQL): SQL {
  return sql`, further AS (
      SELECT s.uid, s.schedule_id, s.version, s.lane, s.priority, s.limit_id, s.overlap, s.outcome_watched${bounds}, s.now, s.place, i.fire_id, i.scheduled_ms, i.trigger, i.due_ms,
        i.skipped, i.coalesced, i.coalesced_from_ms, i.claimed
      FROM unnest(${ints(places)}, ${columnsOf(fires)}) AS i(place, ${FIRE_COLUMNS}) JOIN advanced s ON s.place = i.place
    )`;
}

/** Null where it equals the next fire, which is the usual case. */
export function occurrenceApart({ nextOccurrenceAt, nextFireAt }: Advance): Instant | null {
  return nextOccurrenceAt === nextFireAt ? null : nextOccurrenceAt;
}

/** Null where it equals the last fire, which is the usual case. */
export function plannedApart({ plannedThrough, lastFireAt }: Advance): Instant | null {
  return plannedThrough === lastFireAt ? null : plannedThrough;
}

export const USUAL_TRIGGER = 'schedule' satisfies RunTrigger;
