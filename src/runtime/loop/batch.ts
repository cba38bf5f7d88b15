import { systemClock } from '../clock.ts';

/** `refused`: the error is about one of the items. `outOfTime`: the items were too much work for one batch, or one of them is. */
export type BatchFault = 'refused' | 'outOfTime';

interface HalvingWork<T> {
  /** Does all items, or throws and has done none. After `outOfTime` it may have done them: what it does twice must do no harm. */
  work: (items: readonly T[]) => Promise<void>;
  /** Whether the batch is at fault, so that others can be done without it; null: anything else, such as an outage. */
  faultOf: (error: unknown) => BatchFault | null;
  /** Items that were at fault before: they are done apart from all others, and after them. */
  wasSetAside?: (item: T) => boolean;
  /** Called for the one item that was at fault alone. */
  setAside: (item: T, error: unknown) => Promise<void> | void;
}

/**
 * Does a batch. If it is at fault, divides it down to the one item that is, and sets that item aside, so that it holds up no other. Any
 * other error is thrown, once all parts have had their turn. A batch that ran out of time is divided by eight, and after a few such
 * parts the error is thrown, or once dividing has taken very long: a pass of a loop must end in time, and what it has set aside stays so.
 */
export async function inHalves<T>(items: readonly T[], halving: HalvingWork<T>): Promise<void> {
  const { wasSetAside = () => false } = halving;
  const again = items.filter(wasSetAside);
  const others = again.length === 0 ? items : items.filter((item) => !wasSetAside(item));
  const met: Met = { outOfTime: 0, lastFault: null, dividesUntil: Infinity, errors: [] };
  await inParts([others, again], halving, met);
  if (met.errors.length > 0) throw met.errors[0];
}

/** The same, of a batch that was at fault just now, in whatever way the caller tried it. */
export async function inHalvesOnceFailed<T>(
  items: readonly T[],
  error: unknown,
  halving: HalvingWork<T>,
): Promise<void> {
  let isFirst = true;
  const work = async (some: readonly T[]) => {
    if (!isFirst) return halving.work(some);
    isFirst = false;
    throw error;
  };
  await inHalves(items, { ...halving, work });
}

const PARTS = { refused: 2, outOfTime: 8 } as const;
/** From 4,096 items down to one. At 15 s each, a pass ends before the watchdog takes the loop for dead. */
const MOST_OUT_OF_TIME = 5;

/** Where each item is refused, one after the other. */
const MOST_DIVIDING_MS = 60_000;

interface Met {
  outOfTime: number;
  lastFault: unknown;
  /** Monotonic: set by the first fault. */
  dividesUntil: number;
  /** The first one is thrown in the end. */
  errors: unknown[];
}

/**
 * A part at fault is divided after the parts beside it, which so do not wait for its pieces; of two, the first is divided before more
 * are tried, so that one pass comes down to an item.
 */
async function inParts<T>(parts: Iterable<readonly T[]>, halving: HalvingWork<T>, met: Met): Promise<void> {
  let pieces: readonly T[][] = [];
  for (const part of parts) {
    if (met.outOfTime >= MOST_OUT_OF_TIME || systemClock.monotonic() >= met.dividesUntil) {
      // The next pass goes on with what is left.
      met.errors.push(met.lastFault);
      return;
    }
    const found = await attempt(part, halving, met).catch((error: unknown) => {
      met.errors.push(error);
      return [];
    });
    if (found.length === 0) continue;
    if (pieces.length > 0) await inParts(pieces, halving, met);
    pieces = found;
  }
  if (pieces.length > 0) await inParts(pieces, halving, met);
}

/** Answers the pieces into which to divide the part: none where it was done, or was one item, which is set aside. */
async function attempt<T>(part: readonly T[], halving: HalvingWork<T>, met: Met): Promise<readonly T[][]> {
  const [only, ...others] = part;
  if (only === undefined) return [];
  try {
    await halving.work(part);
    return [];
  } catch (error) {
    const fault = halving.faultOf(error);
    if (fault === null) throw error;
    met.lastFault = error;
    if (met.dividesUntil === Infinity) met.dividesUntil = systemClock.monotonic() + MOST_DIVIDING_MS;
    if (fault === 'outOfTime') met.outOfTime += 1;
    if (others.length > 0) return partsOf(part, PARTS[fault]);
    await halving.setAside(only, error);
    return [];
  }
}

function partsOf<T>(items: readonly T[], count: number): T[][] {
  const size = Math.ceil(items.length / count);
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

/** Does each part, whatever happened to the parts before it; then throws the first error. */
export async function eachInTurn<T>(parts: Iterable<T>, work: (part: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  for (const part of parts) await work(part).catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}

interface BatchOptions<Asked, Answer> {
  /** Answers in the order of the calls. If it rejects, every call of the batch does. */
  work: (asked: readonly Asked[]) => Promise<readonly Answer[]>;
  /** The greatest weight of a batch; a heavier call goes alone. */
  maxWeight?: number;
  weightOf?: (asked: Asked) => number;
}

interface Call<Asked, Answer> {
  asked: Asked;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
}

/** Combines calls: calls of the same moment go together. Calls made while a batch is under way form the next batch. */
export function batchCalls<Asked, Answer>({
  work,
  maxWeight = Infinity,
  weightOf = () => 1,
}: BatchOptions<Asked, Answer>): (asked: Asked) => Promise<Answer> {
  let waiting: Call<Asked, Answer>[] = [];
  let busy = false;

  async function workAll(): Promise<void> {
    busy = true;
    // Calls of the same moment join the batch.
    await Promise.resolve();
    while (waiting.length > 0) await answerAll(nextBatch(), work);
    busy = false;
  }

  function nextBatch(): Call<Asked, Answer>[] {
    let weight = 0;
    const tooMuch = waiting.findIndex(({ asked }, index) => (weight += weightOf(asked)) > maxWeight && index > 0);
    const size = tooMuch === -1 ? waiting.length : tooMuch;
    const batch = waiting.slice(0, size);
    waiting = waiting.slice(size);
    return batch;
  }

  return (asked) =>
    new Promise((resolve, reject) => {
      waiting.push({ asked, resolve, reject });
      if (!busy) void workAll();
    });
}

async function answerAll<Asked, Answer>(
  batch: readonly Call<Asked, Answer>[],
  work: BatchOptions<Asked, Answer>['work'],
): Promise<void> {
  try {
    const answers = await work(batch.map(({ asked }) => asked));
    if (answers.length !== batch.length) throw new Error('a batch was not answered call by call');
    for (const [index, answer] of answers.entries()) batch[index]?.resolve(answer);
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}

/** Does work of a number of rows that fits into its time limit: fewer after a failure, which may have been too much at once. */
export interface PageSize {
  /** Hands the work the number of rows that it may take. @throws what the work throws */
  fit<T>(work: (limit: number) => Promise<T>): Promise<T>;
}

/** A failure divides the size by four, down to one row; a success doubles it, up to `most`. */
export function createPageSize(most: number): PageSize {
  let size = most;
  return {
    fit: async (work) => {
      try {
        const result = await work(size);
        size = Math.min(most, size * 2);
        return result;
      } catch (error) {
        size = Math.max(1, Math.floor(size / 4));
        throw error;
      }
    },
  };
}
