import { setTimeout as sleep } from 'node:timers/promises';
import { type DemoStats, claimsOf, statsOf } from './checker/collect-evidence.ts';
import { dueMoments } from './load/schedule-mix.ts';
import { type Snapshot, latenessOf } from './screen/frame.ts';
import type { Stage } from './stage.ts';

/** Reads the state of the demo twice a second and shows it, until its caller stops it. */
export interface Watch {
  /** firelock's own count, as it was last answered; null: it has not been. */
  readonly stats: DemoStats | null;
  /** How many fires are due in all. */
  readonly dueInAll: () => number;
  /** Looks once more, and shows it. */
  look(): Promise<void>;
  /** Idempotent. */
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 500;
const POINT_EVERY_MS = 1_000;
const CURVE_KEEPS = 120;

export function startWatch(stage: Stage): Watch {
  const stopping = new AbortController();
  let stats: DemoStats | null = null;
  let stranded = 0;
  const curve = createCurve(stage);
  const due = dueCounter(stage);

  const look = async () => {
    await stage.cluster.look();
    // Of those that answer: all may be busy starting.
    if (stage.times !== null) {
      [stats, stranded] = await Promise.all([
        statsOf(stage.client).catch(() => stats),
        strandedOf(stage).catch(() => stranded),
      ]);
    }
    if (stats !== null) curve.add({ open: stats.openRuns, lost: lostNow(stats, stranded) });
    stage.screen.show(snapshotOf(stage, { stats, stranded, curve: curve.points, due }));
  };
  const watch = async () => {
    while (!stopping.signal.aborted) {
      await look();
      await sleep(LOOK_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const watching = watch();
  return {
    get stats() {
      return stats;
    },
    dueInAll: () => due(Infinity),
    look,
    stop: () => {
      stopping.abort();
      return watching;
    },
  };
}

/** A point for each second. */
function createCurve({ clock }: Stage) {
  const points: Snapshot['curve'][number][] = [];
  let addedAt = -Infinity;
  return {
    points,
    add: (point: Snapshot['curve'][number]) => {
      if (clock.monotonic() - addedAt < POINT_EVERY_MS) return;
      addedAt = clock.monotonic();
      points.push(point);
      points.splice(0, points.length - CURVE_KEEPS);
    },
  };
}

/** How many fires were due so many milliseconds after the first one; none as long as there are no schedules. */
function dueCounter(stage: Stage): (untilMs: number) => number {
  let bySecond: number[] | null = null;
  return (untilMs) => {
    if (stage.times === null) return 0;
    bySecond ??= countBySecond(stage);
    return bySecond.slice(0, Math.max(0, Math.floor(untilMs / 1000) + 1)).reduce((sum, one) => sum + one, 0);
  };
}

function countBySecond({ schedules, times, options }: Stage): number[] {
  const counts = Array.from({ length: options.seconds }, () => 0);
  if (times === null) return counts;
  for (const { rule } of schedules) {
    for (const at of dueMoments(rule, times)) {
      const second = (at - times.from) / 1000;
      counts[second] = (counts[second] ?? 0) + 1;
    }
  }
  return counts;
}

/** Runs that are still claimed by an instance that was killed: no other has found them yet. */
async function strandedOf({ client, cluster }: Stage): Promise<number> {
  const claims = await claimsOf(client);
  return [...claims].reduce((sum, [id, claimed]) => (cluster.killedIds.has(id) ? sum + claimed : sum), 0);
}

/** Claimed by the dead, or taken over from them and not handed off since. */
function lostNow({ lostRuns, recoveredRuns }: DemoStats, stranded: number): number {
  return stranded + lostRuns - recoveredRuns;
}

interface Seen {
  stats: DemoStats | null;
  stranded: number;
  curve: Snapshot['curve'];
  due: (untilMs: number) => number;
}

function snapshotOf(stage: Stage, { stats, stranded, curve, due }: Seen): Snapshot {
  const { clock, times, options, phase, schedules, cluster, deliveries, events } = stage;
  const sinceFrom = times === null ? -1 : clock.now() - times.from;
  const [lost, recovered] = [stats?.lostRuns ?? 0, stats?.recoveredRuns ?? 0];
  return {
    ...{ phase, curve, events, lost, recovered },
    ...{ elapsedMs: Math.max(0, sinceFrom), totalMs: options.seconds * 1000, schedules: schedules.length },
    instances: cluster.instances,
    due: due(sinceFrom),
    delivered: deliveries.occurrences,
    skipped: stats?.skippedRuns ?? 0,
    open: stats?.openRuns ?? 0,
    lostNow: stats === null ? 0 : lostNow(stats, stranded),
    lateness: latenessOf(deliveries.lateness),
  };
}
