import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultCluster } from '../cluster/cluster.ts';
import type { FinalRow, Sighting, WorkerLifetime } from './graph-history.ts';
import type { Instance } from '../cluster/instance.ts';

/** Looks at the rows of all runs again and again, so that an end that is taken back does not go unseen. */
interface GraphObserver {
  readonly sightings: Sighting[];
  /** How many had ended at the last look. */
  ended(): number;
  /** How many had not, at the last look; Infinity where it began before this moment. */
  open(since: number): number;
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 1_500;
const ENDED = `status NOT IN ('waiting', 'pending', 'running')`;

export function startGraphObserver(cluster: FaultCluster): GraphObserver {
  const sightings: Sighting[] = [];
  const statuses = new Map<string, string>();
  let stopping = false;
  let ended = 0;
  let open = 0;
  let lookedAt = -Infinity;

  async function look(): Promise<void> {
    const beganAt = performance.now();
    const rows = await cluster.admin(`SELECT id, status, ${ENDED} AS ended FROM all_runs`);
    if (!rows) return;
    const at = performance.now();
    for (const { id, status, ended: isEnded } of rows as { id: string; status: string; ended: boolean }[]) {
      const before = statuses.get(id);
      if (before === status || (before === undefined && !isEnded)) continue;
      statuses.set(id, status);
      sightings.push({ runId: id, status, at });
    }
    ended = rows.filter((row) => row['ended'] === true).length;
    open = rows.length - ended;
    lookedAt = beganAt;
  }

  async function keepLooking(): Promise<void> {
    while (!stopping) {
      await look();
      await sleep(LOOK_EVERY_MS);
    }
  }

  const looking = keepLooking();
  return {
    sightings,
    ended: () => ended,
    open: (since) => (lookedAt < since ? Infinity : open),
    stop: async () => {
      stopping = true;
      await looking;
    },
  };
}

interface Final {
  rows: FinalRow[];
  uncounted: number;
  /** When instances were declared dead, by id. */
  deaths: Map<string, number>;
}

export async function finalRows(cluster: FaultCluster): Promise<Final> {
  const rows = await cluster.admin(
    `SELECT id, key, status, error->>'kind' AS "errorKind", result_body AS body, attempts,
      extract(epoch FROM finished_at)::float8 * 1000 - ${performance.timeOrigin} AS "endedAt" FROM all_runs`,
  );
  const edges = await cluster.admin(
    `SELECT count(*)::int AS count FROM run_dependencies d
     JOIN history r ON r.id = d.depends_on
     WHERE d.counted_at IS NULL`,
  );
  const dead = await cluster.admin(
    `SELECT id, extract(epoch FROM died_at)::float8 * 1000 AS at FROM instances WHERE died_at IS NOT NULL`,
  );
  if (!rows || !edges || !dead) throw new Error('the rows could not be read');
  return {
    rows: rows as unknown as FinalRow[],
    uncounted: Number(edges[0]?.['count']),
    deaths: new Map(dead.map(({ id, at }) => [String(id), Number(at)])),
  };
}

/** What the instances say of themselves that no row tells: marks the lives, and counts what recovery had to release. */
export async function readLogs(
  directory: string,
  instances: readonly Instance[],
  { lives, deaths }: { lives: (WorkerLifetime & { pid: number })[]; deaths: ReadonlyMap<string, number> },
): Promise<number> {
  const logs = await Promise.all(
    instances.map(({ name }) => readFile(join(directory, `instance-${name}.log`), 'utf8')),
  );
  const linesWith = (said: string) =>
    logs
      .flatMap((log) => log.split('\n'))
      .filter((line) => line.includes(said))
      .map((line) => JSON.parse(line) as { pid: number; instanceId?: string; count?: number });
  const replaced = new Set(linesWith('had declared this one dead').map(({ pid }) => pid));
  const registered = Map.groupBy(linesWith('registered as an instance'), ({ pid }) => pid);
  for (const life of lives) {
    // Killed soon afterwards, it never heard of it.
    const wasDeclaredDead = (registered.get(life.pid) ?? []).some(({ instanceId = '' }) => {
      const diedAt = deaths.get(instanceId) ?? Infinity;
      return diedAt < performance.timeOrigin + life.to;
    });
    life.replaced = replaced.has(life.pid) || wasDeclaredDead;
  }
  const released = linesWith('waiting runs had nothing left to wait for');
  return released.reduce((sum, { count = 0 }) => sum + count, 0);
}
