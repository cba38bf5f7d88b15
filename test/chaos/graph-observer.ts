import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultCluster } from './cluster.ts';
import type { FinalRow, Life, Sighting } from './graph-history.ts';
import type { Instance } from './instance.ts';

/** Looks at the rows of all runs again and again, so that an end that is taken back does not go unseen. */
export interface GraphObserver {
  readonly sightings: Sighting[];
  /** How many had ended at the last look. */
  ended(): number;
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 1_500;
const ENDED = `status NOT IN ('waiting', 'pending', 'running')`;

export function startGraphObserver(cluster: FaultCluster): GraphObserver {
  const sightings: Sighting[] = [];
  const statuses = new Map<string, string>();
  let stopping = false;
  let ended = 0;

  async function look(): Promise<void> {
    const rows = (await cluster.admin(`SELECT id, status, ${ENDED} AS ended FROM runs`)) ?? [];
    const at = performance.now();
    for (const { id, status, ended: isEnded } of rows as { id: string; status: string; ended: boolean }[]) {
      const before = statuses.get(id);
      if (before === status || (before === undefined && !isEnded)) continue;
      statuses.set(id, status);
      sightings.push({ runId: id, status, at });
    }
    ended = rows.filter((row) => row['ended'] === true).length;
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
    stop: async () => {
      stopping = true;
      await looking;
    },
  };
}

export async function finalRows(cluster: FaultCluster): Promise<{ rows: FinalRow[]; uncounted: number }> {
  const rows = await cluster.admin(
    `SELECT id, key, status, error->>'kind' AS "errorKind", result_body AS body, attempts FROM runs`,
  );
  const edges = await cluster.admin(
    `SELECT count(*)::int AS count FROM run_dependencies d
     JOIN runs r ON r.scheduled_for = d.depends_on_scheduled_for AND r.id = d.depends_on
     WHERE d.counted_at IS NULL AND r.${ENDED}`,
  );
  if (!rows || !edges) throw new Error('the rows could not be read');
  return { rows: rows as unknown as FinalRow[], uncounted: Number(edges[0]?.['count']) };
}

/** What the instances say of themselves that no row tells: marks the lives, and counts what recovery had to release. */
export async function readLogs(
  directory: string,
  instances: readonly Instance[],
  lives: (Life & { pid: number })[],
): Promise<number> {
  const logs = await Promise.all(
    instances.map(({ name }) => readFile(join(directory, `instance-${name}.log`), 'utf8')),
  );
  const linesWith = (said: string) =>
    logs
      .flatMap((log) => log.split('\n'))
      .filter((line) => line.includes(said))
      .map((line) => JSON.parse(line) as { pid: number; count?: number });
  const replaced = new Set(linesWith('had declared this instance dead').map(({ pid }) => pid));
  for (const life of lives) life.replaced = replaced.has(life.pid);
  const released = linesWith('runs that waited for nothing any more were found');
  return released.reduce((sum, { count = 0 }) => sum + count, 0);
}
