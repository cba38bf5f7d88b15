import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../../core/instant.ts';
import type { AttemptError } from '../../../core/runs/attempts/outcome.ts';
import { type RunTrigger, plannedRunId } from '../../../core/runs/run.ts';
import type { Schedule } from '../../../core/schedules/schedule.ts';
import type { PlannedFire } from '../../../core/time/plan-due.ts';
import { booleans, ints, milliseconds, texts, uuids } from '../../../postgres/sql/arrays.ts';

/** One fire to be recorded. */
export interface Intent extends Omit<PlannedFire, 'trigger'> {
  id: string;
  scheduleUid: string;
  trigger: RunTrigger;
  /** The recording instance has a free slot for it and sends it itself: no second round trip. */
  claimed: boolean;
}

/** What a record says of a fire that a caller asked to skip; null: nothing. */
export function errorOfSkip({ why = null }: Pick<Intent, 'why'>): AttemptError | null {
  return why === null ? null : { kind: 'reported', message: why };
}

/** The record of a planned fire, but for which instance claims it. */
export function intentOf(scheduleUid: string, fire: PlannedFire): Omit<Intent, 'claimed'> {
  return { ...fire, scheduleUid, id: plannedRunId(scheduleUid, fire.scheduledFor) };
}

/** It stands for fires that were too late when they were planned. */
export function wasMissed({
  skipped,
  trigger,
  coalesced,
}: Pick<Intent, 'trigger' | 'coalesced'> & { skipped: string | null }): boolean {
  return coalesced > 0 || trigger === 'catchUp' || (skipped !== null && skipped !== 'request' && skipped !== 'expired');
}

/**
 * Where a schedule stands after its plan; the guard is what the fire-lock statement answered. There is no next occurrence where there is
 * no next fire, and only there; `plannedThrough` is the newest that this plan records, `lastFireAt` the newest that it fires.
 */
export interface Advance extends Pick<
  Schedule,
  'uid' | 'version' | 'nextOccurrenceAt' | 'nextFireAt' | 'plannedThrough' | 'lastFireAt'
> {
  lockedAt: Instant;
  /** Its runs have bounds, or expire; absent: they do not. */
  isBounded?: boolean;
  /** Some of its runs are observed; absent: none is. */
  observes?: boolean;
}

export interface Recorded {
  /** Schedules whose guard was still true; the others' locks were lost and nothing of them was written. */
  advanced: number;
  /** Whether this statement inserted the run with that id: with its claim, where one was asked for and the run does not wait. */
  inserted: (id: string) => boolean;
  /** Whether it inserted it as waiting, for its overlap to be judged. */
  waits: (id: string) => boolean;
  /** Whether it had waited too long by then, and so has no claim. */
  expired: (id: string) => boolean;
  /** When they were claimed. */
  claimedAt: Instant;
  /** Of runs that ended at once, as missed: how many effects there are to see to. */
  effects: number;
}

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
