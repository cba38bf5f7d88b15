/**
 * Guarantees: when the newest zone data in use change, next fires that were stored under other data are computed again, once.
 * Transaction: one statement for each page of schedules, guarded by what was read; where some name calendars, one that shares these first.
 * If the process dies here: the end of the look-through is not recorded, so the next start with this data begins it anew.
 */
import { setImmediate } from 'node:timers/promises';
import type { Instant } from '../core/instant.ts';
import { LONGEST_REACH_MS } from '../core/days/day-times.ts';
import type { Calendars } from '../core/exclusions/exclusion.ts';
import { fireTimes } from '../core/time/fire-times.ts';
import { type ZoneDataSeen, cursorByZoneData, judgeZoneData } from '../core/time/cursors.ts';
import { createLoop, type Loop } from '../runtime/loop/loop.ts';
import { createPageSize } from '../runtime/loop/batch.ts';
import {
  type CursorMove,
  listZonedSchedules,
  moveCursorsIfUnplanned,
  readZoneData,
  recordZoneDataIfAlone,
  type ZonedSchedule,
} from '../store/schedules/zoned-cursors.ts';
import type { Database, LoopDeps } from '../postgres/database.ts';
import {
  type KnownCalendars,
  NO_KNOWN_CALENDARS,
  readCalendars,
  shareFreeCalendars,
} from '../store/calendars/calendar-histories.ts';
import { calendarIdsIn, readTiming } from '../core/schedules/stored-definition.ts';

interface ZoneWatchDeps extends LoopDeps {
  /** The version of this instance's time zone data. */
  zoneData: string;
}

const PAGE = 500;
/** How long it may block the process. */
const SLICE_MS = 5;
/** When to check again, since other instances may have planned meanwhile. */
const AGAIN_MS = 10_000;
/** When to look again at a page whose calendars were being edited. */
const CALENDARS_MS = 100;

/** No cursor is moved back further than this. */
const BACK_MS = 2 * 86_400_000;

/** A look through the cursors: each pass of the loop reads one page. */
interface LookThrough {
  began: Instant;
  /** The last uid that was looked at. */
  after: string | null;
  moved: number;
}

// oxlint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createZoneWatch({ database, clock, events, zoneData }: ZoneWatchDeps): Loop {
  let look: LookThrough | null = null;
  /** The zone data versions of the living instances, as far as known; null: not read yet. */
  let living: string | null = null;
  let changed = true;
  /** The versions of the other living instances at the last look. While they stay the same, there is no second look. */
  let lookedBeside: string | null = null;
  const size = createPageSize(PAGE);

  function pass(): Promise<number> {
    const at = look;
    return at && !changed ? size.fit((limit) => goOn(at, limit)) : judge();
  }

  async function judge(): Promise<number> {
    const seen = await database.run((db) => readZoneData(db, zoneData));
    changed = false;
    const others = livingOf(seen);
    living = [...others, zoneData].sort().join();
    const verdict = judgeZoneData(zoneData, seen);
    if (verdict.kind !== 'look') {
      endLook();
      lookedBeside = null;
      return verdict.kind === 'wait' ? verdict.ms : Infinity;
    }
    const beside = others.join();
    if (!look && beside !== '' && beside === lookedBeside) return Infinity;
    lookedBeside = beside;
    look ??= { began: seen.now, after: null, moved: 0 };
    return 0;
  }

  async function goOn(at: LookThrough, limit: number): Promise<number> {
    const page = await database.run((db) => listZonedSchedules(db, { after: at.after, limit }));
    const known = await calendarsOf(database, page.schedules, page.now);
    const moves = await movesOf(page.schedules, known.histories, page.now);
    const moved = await write(moves, known.editions);
    if (moved === null) return CALENDARS_MS;
    at.moved += moved;
    if (page.last !== null) {
      at.after = page.last;
      return 0;
    }
    const recorded = await database.run((db) => recordZoneDataIfAlone(db, zoneData, at.began));
    endLook();
    return recorded ? Infinity : AGAIN_MS;
  }

  /** Null: calendars are being edited, or were edited meanwhile. The page must be checked again. */
  async function write(moves: readonly CursorMove[], editions: KnownCalendars['editions']): Promise<number | null> {
    if (moves.length === 0) return 0;
    if (editions.size === 0) return database.run((db) => moveCursorsIfUnplanned(db, zoneData, moves));
    return database.transaction(async (tx) => {
      const current = await shareFreeCalendars(tx, [...editions.keys()]);
      if ([...editions].some(([id, edition]) => current.get(id) !== edition)) return null;
      return moveCursorsIfUnplanned(tx, zoneData, moves);
    });
  }

  async function movesOf(
    schedules: readonly ZonedSchedule[],
    calendars: Calendars,
    now: Instant,
  ): Promise<CursorMove[]> {
    const moves: CursorMove[] = [];
    let sliceEnd = clock.monotonic() + SLICE_MS;
    for (const schedule of schedules) {
      if (clock.monotonic() >= sliceEnd) {
        await setImmediate();
        sliceEnd = clock.monotonic() + SLICE_MS;
      }
      const move = moveOf(schedule, calendars, now);
      if (move) moves.push(move);
    }
    return moves;
  }

  function endLook(): void {
    if (look && look.moved > 0) events.emit({ type: 'cursorsMoved', count: look.moved, zoneData });
    look = null;
  }

  const loop = createLoop({ name: 'zone-watch', clock, body: pass, events });
  events.subscribe((event) => {
    if (event.type !== 'gaugesSampled' || living === null) return;
    // A sample without our own version is older than our registration: ignore it.
    const now = event.zoneData.join();
    if (now === living || !event.zoneData.includes(zoneData)) return;
    living = now;
    changed = true;
    loop.wake();
  });
  return {
    ...loop,
    stop: async () => {
      await loop.stop();
      endLook();
    },
  };
}

function livingOf({ others }: ZoneDataSeen): string[] {
  return others.flatMap(({ version, alive }) => (alive ? [version] : [])).sort();
}

/** The calendars' content for the moments to which a cursor can be moved. */
function calendarsOf(database: Database, schedules: readonly ZonedSchedule[], now: Instant): Promise<KnownCalendars> {
  const ids = [...new Set(schedules.flatMap(({ timing }) => calendarIdsIn(timing)))];
  const since = now - BACK_MS - LONGEST_REACH_MS;
  if (ids.length === 0) return Promise.resolve(NO_KNOWN_CALENDARS);
  return database.run((db) => readCalendars(db, ids, since));
}

/** Null if its cursor is right, or cannot be computed: the tick reports that. */
function moveOf(schedule: ZonedSchedule, calendars: Calendars, now: Instant): CursorMove | null {
  try {
    if (!holdsMoments(schedule)) return null;
    const times = fireTimes(readTiming(schedule.timing), schedule, calendars);
    const nextOccurrenceAt = cursorByZoneData(times, schedule, now);
    if (nextOccurrenceAt === schedule.nextOccurrenceAt) return null;
    const nextFireAt = nextOccurrenceAt === null ? null : times.dueAt(nextOccurrenceAt);
    return { schedule, nextOccurrenceAt, nextFireAt };
  } catch {
    return null;
  }
}

/** Another program may have written infinity. */
function holdsMoments({ nextOccurrenceAt, lastFireAt, updatedAt, createdAt }: ZonedSchedule): boolean {
  return [nextOccurrenceAt ?? 0, lastFireAt ?? 0, updatedAt, createdAt].every(Number.isFinite);
}
