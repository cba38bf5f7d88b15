import { type Cause, type Known, alertChanges } from '../../../src/core/alerts/episode.ts';
import type { AttemptRow, RunRow, VersionRow } from './history.ts';

/** What becomes of the one kind of episode that the ends of runs say all about. */
export interface Transition {
  event: 'opened' | 'closed';
  at: number;
}

interface Facts {
  runs: readonly RunRow[];
  attempts: readonly AttemptRow[];
  /** All of the schedule, and those that pause or delete it. */
  versions: readonly VersionRow[];
  stops: readonly VersionRow[];
}

export const FAILING = ['failed', 'unknown', 'abandoned'];

/**
 * What the state machine makes of what is known of a schedule, told to it in the order in which it happened: no order of effects makes more
 * of it. It is firelock's own, the only part that the checker shares: it has mutants and random orders of its own.
 */
export function replayEpisodes(facts: Facts): Transition[] {
  const found: Transition[] = [];
  let known: Known = {
    ...{ isEnabled: true, isPausedByFirelock: false, resumedAt: null, isOver: false, lastFireAt: null },
    ...{
      error: null,
      lateSince: null,
      expect: null,
      calendar: null,
      wellAt: new Map(),
      open: new Map(),
      over: new Map(),
    },
  };
  for (const { at, what } of eventsOf(facts)) {
    if (what === 'stops' || what === 'goesOn') {
      const isEnabled = what === 'goesOn';
      known = { ...known, isEnabled, resumedAt: isEnabled && !known.isEnabled ? at : known.resumedAt };
    }
    if (what === 'heals') known = { ...known, wellAt: new Map([['failed', at]]) };
    const causes: Cause[] = what === 'breaks' ? [{ ...BREAKS, at }] : [];
    const { opened, brokenAgain, closed } = alertChanges(known, causes, at);
    for (const { brokenAt, failures } of [...opened, ...brokenAgain])
      known = { ...known, open: new Map([['failed', { id: 'failed', brokenAt, failures }]]) };
    if (closed.length > 0) known = { ...known, open: new Map() };
    found.push(...opened.map((): Transition => ({ event: 'opened', at })));
    found.push(...closed.map((): Transition => ({ event: 'closed', at })));
  }
  return found;
}

const BREAKS = { kind: 'breaks', alertKind: 'failed', runId: null, count: 0 } as const;

function eventsOf({ runs, attempts, versions, stops }: Facts) {
  const settledLate = new Set(runs.flatMap(({ id, status }) => (status === 'succeeded' ? [id] : [])));
  return [
    ...runs.flatMap(({ status, finishedAt: at }) => {
      if (at === null) return [];
      if (status === 'succeeded') return [{ at, what: 'heals' }];
      return FAILING.includes(status) ? [{ at, what: 'breaks' }] : [];
    }),
    // A late answer settled an unknown run, which had opened one.
    ...attempts.flatMap(({ runId, outcome, finishedAt: at }) =>
      settledLate.has(runId) && outcome === 'unknown' ? [{ at, what: 'breaks' }] : [],
    ),
    ...versions.map((version) => ({ at: version.at, what: stops.includes(version) ? 'stops' : 'goesOn' })),
  ].sort((a, b) => a.at - b.at);
}
