import type { Peers } from './peers/peers.ts';
import type { Server } from './support/processes/postgres.ts';
import type { Receiver } from './support/processes/receiver.ts';

/** One load under which firelock is measured, each a file of bench/scenarios. */
export interface Scenario {
  name: string;
  /** One line: what is measured. */
  title: string;
  /** Does all its rounds, and prints a line as each ends. */
  run(bench: Bench): Promise<ScenarioResult>;
}

export interface Bench {
  server: Server;
  /** Of the built daemon. */
  main: string;
  /** A process of its own. */
  receiver: Receiver;
  /** As many as are wanted; a long scenario may do fewer and says so. */
  rounds: number;
  /** Small sizes, to see that all works: its figures mean nothing. */
  quick: boolean;
  /** For how long a transaction keeps its snapshot, where that is measured. */
  holdMinutes: number;
  /** Null unless they were asked for. */
  peers: Peers | null;
  /** Where daemons leave their CPU profiles. */
  profile: string | null;
  log(line: string): void;
}

export interface ScenarioResult {
  scenario: string;
  /** Free-form figures of each round, for the JSON. */
  rounds: Record<string, unknown>[];
  /** What is printed: the columns of a small table, already medians. */
  table: Table;
  bars: Bar[];
  notes: string[];
}

export interface Table {
  head: string[];
  rows: string[][];
}

/** One line of the table of what is to be reached. */
export interface Bar {
  what: string;
  value: number;
  unit: string;
  /** What it must reach; null: nothing is demanded of it. */
  limit: number | null;
  /** What it is to reach in the end. */
  aim: number | null;
  /** Else at least. */
  atMost: boolean;
  met: boolean;
}

/** A figure with an aim, and without one to be met at once where `limit` is null. */
export function atMost(
  what: string,
  value: number,
  unit: string,
  limit: number | null,
  aim: number | null = null,
): Bar {
  return { what, value, unit, limit, aim, atMost: true, met: value <= (limit ?? Infinity) };
}

export function atLeast(
  what: string,
  value: number,
  unit: string,
  limit: number | null,
  aim: number | null = null,
): Bar {
  return { what, value, unit, limit, aim, atMost: false, met: value >= (limit ?? -Infinity) };
}
