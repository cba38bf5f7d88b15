import { databaseTrouble, lastingTrouble } from '../core/database-trouble.ts';
import type { TroubledNotifiers } from '../core/alerts/alert.ts';
import type { FirelockEvent } from '../core/events.ts';
import type { Clock } from './clock.ts';
import type { EventBus } from './event-bus.ts';

/** What the instance knows about itself since its start. */
export interface InstanceState {
  migrated: boolean;
  /** It has registered, and its services have started. */
  working: boolean;
  stopping: boolean;
  /** Where its API listens; null: it does not yet. */
  port: number | null;
  /** Claimed by an instance that is silent; as of the last sample. */
  strandedRuns: number;
  /** Why the last pass of a loop failed; null: the log says it. A loop whose last pass succeeded is not there. */
  failures: Map<string, string | null>;
  /** Why work failed because of the database in the last minute, the newest reason first. */
  troubles: () => Trouble[];
  /** The code of what it lacks to send; null: nothing. */
  shortage: string | null;
  /** Since when (monotonic ms) this instance has had no connection, by what for. */
  without: Map<string, number>;
  /** How long a moment of `without` is ago, in ms. */
  since: (moment: number) => number;
  /** How many rows each loop leaves out for now, since it could not write them. */
  rowsSetAside: Map<string, number>;
  /** Effects of ends that have failed; as of the last sample. */
  effectsFailing: number;
  /** For how long the oldest effect has waited that has not failed; as of the last sample. */
  oldestEffectSeconds: number;
  /** Schedules without a success in time; as of the last sample. */
  schedulesLate: number;
  /** Calendars that schedules name, and that end soon or have ended; as of the last sample. */
  calendarsEnding: number;
  /** Schedules that are silent, since the database's clock was ahead; as of the last sample. */
  schedulesAhead: number;
  /** Schedules that the set of FIRELOCK_SCHEDULES_FILE has, and the file has not; as of the start. */
  schedulesNotInFile: number;
  /** Versions of the time zone data that the living instances plan with; as of the last sample. */
  zoneData: readonly string[];
  /** Ids of keys that secrets of schedules need, and this instance does not have; as of the last sample. */
  missingKeys: readonly string[];
  /** Notifiers that tell nobody; as of the last sample. */
  notifiers: TroubledNotifiers;
  /** How many fires this instance has found missed in the last minutes. */
  missedLately: () => number;
}

export interface Trouble {
  words: string;
  /** It lasts until an operator corrects it. */
  lasts: boolean;
}

const LATELY_MS = 10 * 60_000;
const TROUBLED_MS = 60_000;

const UNSAMPLED = {
  strandedRuns: 0,
  effectsFailing: 0,
  oldestEffectSeconds: 0,
  schedulesLate: 0,
  calendarsEnding: 0,
  schedulesAhead: 0,
  schedulesNotInFile: 0,
  zoneData: [],
  missingKeys: [],
  notifiers: { undelivered: [], waiting: [] },
};

export function createInstanceState(events: EventBus, clock: Clock): InstanceState {
  const missed: { at: number; fires: number }[] = [];
  const missedLately = (): number => {
    const since = clock.monotonic() - LATELY_MS;
    while (missed[0] !== undefined && missed[0].at < since) missed.shift();
    return missed.reduce((sum, { fires }) => sum + fires, 0);
  };
  const troubled = createTroubles(clock);
  const state: InstanceState = {
    ...{ migrated: false, working: false, stopping: false, port: null },
    failures: new Map(),
    troubles: troubled.lately,
    shortage: null,
    without: new Map(),
    since: (moment) => clock.monotonic() - moment,
    rowsSetAside: new Map(),
    ...UNSAMPLED,
    missedLately,
  };
  events.subscribe((event) => {
    if (event.type === 'firesMissed') {
      const { caughtUp, folded, skipped } = event;
      missedLately();
      missed.push({ at: clock.monotonic(), fires: caughtUp + folded + skipped });
    } else if (event.type === 'databaseFailed' || event.type === 'loopFailed') {
      troubled.met(event.error);
    }
    if (event.type === 'connectionsOpened') noteWithout(state, event.without, clock.monotonic());
    learn(state, event);
  });
  return state;
}

function noteWithout({ without }: InstanceState, now: readonly string[], at: number): void {
  for (const purpose of without.keys()) if (!now.includes(purpose)) without.delete(purpose);
  for (const purpose of now) if (!without.has(purpose)) without.set(purpose, at);
}

function learn(state: InstanceState, event: FirelockEvent): void {
  if (event.type === 'resourcesLacked') {
    state.shortage = event.code;
  } else if (event.type === 'resourcesBack') {
    state.shortage = null;
  } else if (event.type === 'loopFailed') {
    state.failures.set(event.loop, databaseTrouble(event.error));
  } else if (event.type === 'loopPassed') {
    state.failures.delete(event.loop);
  } else if (event.type === 'gaugesSampled') {
    const { type: _, ...sampled } = event;
    Object.assign(state, sampled);
  } else if (event.type === 'schedulesFileApplied') {
    state.schedulesNotInFile = event.left;
  } else if (event.type === 'schedulesAheadCounted') {
    state.schedulesAhead = event.schedules;
  } else if (event.type === 'rowsSetAside') {
    state.rowsSetAside.set(event.loop, event.count);
  } else if (event.type === 'secretKeysSampled') {
    state.missingKeys = event.missing;
  } else if (event.type === 'notifiersSampled') {
    state.notifiers = event.notifiers;
  }
}

function createTroubles(clock: Pick<Clock, 'monotonic'>) {
  /** By its words, the newest last. */
  const met = new Map<string, { lasts: boolean; at: number }>();
  return {
    met: (error: unknown): void => {
      const words = databaseTrouble(error);
      if (words === null) return;
      met.delete(words);
      met.set(words, { lasts: lastingTrouble(error) !== null, at: clock.monotonic() });
    },
    lately: (): Trouble[] => {
      const since = clock.monotonic() - TROUBLED_MS;
      for (const [words, { at }] of met) if (at < since) met.delete(words);
      return [...met].map(([words, { lasts }]) => ({ words, lasts })).reverse();
    },
  };
}
