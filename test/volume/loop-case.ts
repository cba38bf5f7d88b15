import type { SQL } from 'drizzle-orm';
import type { Turning } from '../../src/runtime/loop/loop.ts';
import type { Volume } from './volume.ts';

/** What a loop handles: so many of it are left for the loop, which then works until none is left. */
export interface LoopCase {
  of: string;
  leave: (volume: Volume, count: number) => Promise<unknown>;
  /** Counts what is left. Absent: the loop has made a pass. */
  left?: SQL;
  /** Loops that work beside it. */
  beside?: readonly string[];
  /** Instead of 200. */
  many?: number;
  /** Instead of the daemon's. */
  loop?: (volume: Volume) => Turning;
}

/** By the names of loops in the daemon's table of services; a text says why a loop handles no rows. */
export type LoopTable = Readonly<Record<string, readonly LoopCase[] | string>>;
