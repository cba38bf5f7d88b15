import { inHalves } from '../runtime/loop/batch.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { type Rests, createRests } from '../runtime/loop/rests.ts';
import { reasonOf } from '../runtime/reason.ts';
import { batchFaultOf } from './errors.ts';
import type { Executor } from './executor.ts';
import type { LoopDeps } from './database.ts';

/** What a loop does with rows that it has found. */
export interface RowWork<Row> {
  keyOf: (row: Row) => string;
  /** Does them, or throws and has done none. */
  work: (rows: readonly Row[]) => Promise<void>;
  /** Is told of one that the database refuses. */
  refused: (row: Row, error: string) => void;
  faultOf?: typeof batchFaultOf;
}

/** Sees to rows that were found. One that the database refuses rests, and holds up no other. */
export function seeTo<Row>(
  rests: Rests,
  rows: readonly Row[],
  { keyOf, work, refused, faultOf = batchFaultOf }: RowWork<Row>,
): Promise<void> {
  return inHalves(rows, {
    work,
    faultOf,
    wasSetAside: (row) => rests.wasSetAside(keyOf(row)),
    setAside: (row, error) => {
      rests.add(keyOf(row));
      refused(row, reasonOf(error));
    },
  });
}

export interface WatchDeps extends LoopDeps {
  /** After an outage, the waiting outcomes are written before it is valid again: what ended in time counts. */
  lease: Lease;
}

interface Watch extends Pick<RowWork<string>, 'refused'> {
  name: string;
  /** Ids of runs that are due for it. */
  find: (db: Executor, asked: { limit: number; besides: readonly string[] }) => Promise<string[]>;
  /** Answers how many it did: those that others have locked are left. */
  work: (runIds: readonly string[]) => Promise<number>;
  limit: number;
  everyMs: number;
  /** After a full batch. */
  moreMs: number;
}

/** After one of which others have all rows locked. */
const LOCKED_MS = 200;

/** A loop that looks for runs whose time is up, and sees to them. */
export function createWatch(deps: WatchDeps, watch: Watch): Loop {
  const { database, clock, events, lease } = deps;
  const { name, find, refused, limit, everyMs, moreMs } = watch;
  const rests = createRests({ clock, events, loop: name });
  const body = async () => {
    if (!lease.isValid()) return everyMs;
    const found = await database.run((db) => find(db, { limit, besides: rests.keys() }));
    let done = 0;
    const work = async (some: readonly string[]) => void (done += await watch.work(some));
    await seeTo(rests, found, { keyOf: (id) => id, work, refused });
    if (found.length < limit) return everyMs;
    return done > 0 ? moreMs : LOCKED_MS;
  };
  return createLoop({ name, clock, events, body });
}
