/**
 * Guarantees: what ended longer ago than history is kept is deleted, in small pieces with pauses between; nothing that is open, nor what
 * something open has still to be told of, nor what could be planned again.
 * Transaction: one for each page of runs, with all that belongs to them; one statement for each page of definitions.
 * If the process dies here: the page is deleted or it is not; the next pass, here or elsewhere, finds what is left.
 */
import type { Instant } from '../core/instant.ts';
import { horizonOf } from '../core/time/catch-up.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop.ts';
import { databaseNow } from '../store/database-now.ts';
import type { Database } from '../store/database.ts';
import {
  type DefinitionPosition,
  type RunPosition,
  dropEndedRunsBefore,
  dropUnusedDefinitionsBefore,
  listDefinitions,
  listRunsBefore,
} from '../store/retention.ts';

export interface RetentionDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  retentionDays: number;
  /** Between two looks at what has become old meanwhile; the usual unless a test says otherwise. */
  intervalMs?: number;
  /** Rows of a page. */
  batch?: number;
}

const INTERVAL_MS = 600_000;
const BATCH = 1_000;
/** Plans and backfills reach back to the horizon: what they must find there is kept, however long they take. */
const MARGIN_DAYS = 1;
/** How often what was left is looked at again: old runs that were open, and definitions in use. */
const ROUND_MS = 6 * 3_600_000;
/** For each ms of work so many of rest: history may go slowly. */
const REST = 4;
const SHORTEST_REST_MS = 20;
/** After which it is told how much went so far, where there is much to drop. */
const TELL_AFTER_PAGES = 100;

export function createRetention(deps: RetentionDeps): Loop {
  const { database, clock, events, retentionDays, intervalMs = INTERVAL_MS, batch = BATCH } = deps;
  const runs = createWalk<RunPosition>(clock, batch, {
    list: (before, from) => database.run((db) => listRunsBefore(db, before, from)),
    drop: (before, page) => database.transaction((tx) => dropEndedRunsBefore(tx, before, page)),
  });
  const definitions = createWalk<DefinitionPosition>(clock, batch, {
    list: (_before, from) => database.run((db) => listDefinitions(db, from)),
    drop: async (before, page) => {
      const uids = page.filter(({ isOrphan }) => isOrphan).map(({ uid }) => uid);
      if (uids.length === 0) return 0;
      return await database.run((db) => dropUnusedDefinitionsBefore(db, before, uids));
    },
  });
  let untold = 0;

  async function pass(): Promise<number> {
    const began = clock.monotonic();
    const before = await keptSince();
    const more = (await runs.step(before)) || (await definitions.step(before));
    untold += 1;
    if (!more || untold === TELL_AFTER_PAGES) tell();
    return more ? Math.max(SHORTEST_REST_MS, REST * (clock.monotonic() - began)) : intervalMs;
  }

  /** By both clocks: one that is far ahead must not make all of history look old. */
  async function keptSince(): Promise<Instant> {
    const now = Math.min(await database.run(databaseNow), clock.now());
    return horizonOf(now, retentionDays + MARGIN_DAYS);
  }

  function tell(): void {
    untold = 0;
    events.emit({ type: 'historyDropped', runs: runs.dropped(), definitions: definitions.dropped() });
  }

  return createLoop({ name: 'retention', clock, body: pass, events });
}

interface Pages<Position> {
  list(before: Instant, from: { after: Position | null; limit: number }): Promise<Position[]>;
  /** Answers how many rows went. */
  drop(before: Instant, page: readonly Position[]): Promise<number>;
}

/** Goes through what is old page by page, and on from there when more has become old; from the beginning once a round. */
interface Walk {
  /** One page; answers whether there may be another one now. */
  step(before: Instant): Promise<boolean>;
  /** How many rows went since this was asked last. */
  dropped(): number;
}

function createWalk<Position>(clock: Clock, batch: number, pages: Pages<Position>): Walk {
  let after: Position | null = null;
  let limit = batch;
  let dropped = 0;
  let beganAt = clock.monotonic();
  let isAtEnd = false;

  async function drop(before: Instant, page: readonly Position[]): Promise<void> {
    try {
      dropped += await pages.drop(before, page);
      limit = Math.min(batch, limit * 2);
    } catch (error) {
      // It may have been too much at once. What is too much by itself is passed over until the next round.
      if (page.length === 1) after = page[0] ?? null;
      limit = Math.ceil(page.length / 4);
      throw error;
    }
  }

  return {
    step: async (before) => {
      if (isAtEnd && clock.monotonic() - beganAt >= ROUND_MS) {
        after = null;
        beganAt = clock.monotonic();
      }
      const asked = limit;
      const page = await pages.list(before, { after, limit: asked });
      isAtEnd = page.length < asked;
      if (page.length > 0) {
        await drop(before, page);
        after = page.at(-1) ?? null;
      }
      return !isAtEnd;
    },
    dropped: () => {
      const since = dropped;
      dropped = 0;
      return since;
    },
  };
}
