import { setTimeout as sleep } from 'node:timers/promises';
import { sendGood } from '../../support/calls.ts';
import { startProgram } from '../../support/programs.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';
import type { FaultDeps } from '../faults/faults.ts';
import type { PatroniCluster } from './patroni-cluster.ts';

/** What became of fires that the promoted server knew nothing of, where `resume --from-now` came before the daemons. */
export interface ResumeTrial {
  /** What the command printed. */
  lines: readonly string[];
  /** Sent after the standbys got nothing more. */
  forgotten: number;
  /** Of all at-most-once fires of the trial. */
  atMostOnceRepeats: number;
}

interface Options {
  cluster: PatroniCluster;
  root: string;
  /** For how long the standbys get nothing before the kill. */
  lagMs: number;
}

const LIMIT_MS = 120_000;
const READY_MS = 60_000;
const SCHEDULES = 10;
/** All of them, some seconds long. */
const ENOUGH = 3 * SCHEDULES;

/** A failover that loses commits; the daemons are stopped before they reach the promoted server. */
export async function tryResume(deps: FaultDeps, { cluster, root, lagMs }: Options): Promise<ResumeTrial> {
  const { instances, say } = deps;
  const receiver = await startReceiver();
  try {
    await putSchedules(instances[0]?.url ?? '', receiver.url);
    await receiver.arrived(ENOUGH);
    const old = await until(() => cluster.primary(), LIMIT_MS);
    old.freezeSenders();
    const from = Date.now();
    await sleep(lagMs);
    await old.kill();
    for (const instance of instances) instance.signal('SIGTERM');
    await Promise.all(instances.map((instance) => instance.gone()));
    const forgotten = receiver.arrivals.filter(({ at }) => at >= from).length;
    await cluster.primaryBeside(old);
    const lines = await resume(root, cluster.database.url);
    say(`resumed; ${forgotten} fires had been sent that the new primary does not know`);
    await old.start();
    for (const instance of instances) instance.start();
    await Promise.all(instances.map((instance) => instance.becomesReady(READY_MS)));
    await receiver.arrived(receiver.arrivals.length + ENOUGH);
    await cluster.whole();
    return { lines, forgotten, atMostOnceRepeats: repeatsIn(receiver) };
  } finally {
    await receiver.close();
  }
}

async function putSchedules(url: string, target: string): Promise<void> {
  const items = Array.from({ length: SCHEDULES }, (_, index) => ({
    id: `resume-${index}`,
    cron: '* * * * * *',
    target: { type: 'http', url: target },
    delivery: index % 2 === 0 ? 'atLeastOnce' : 'atMostOnce',
    payload: { atMostOnce: index % 2 === 1 },
  }));
  await sendGood(`${url}/api/v1/schedules/batch`, 'POST', { items });
}

/** It refuses while an instance that was just stopped counts as alive. */
async function resume(root: string, url: string): Promise<readonly string[]> {
  return until(async () => {
    const variables = { DATABASE_URL: url, LOG_LEVEL: 'error' };
    const program = startProgram({ root, args: ['resume', '--from-now'], variables });
    return (await program.exited) === 0 ? program.text.out.trim().split('\n') : null;
  }, LIMIT_MS);
}

function repeatsIn({ arrivals }: Receiver): number {
  const ids = arrivals
    .filter(({ body }) => (body.payload as { atMostOnce: boolean }).atMostOnce)
    .map(({ body }) => body.runId);
  return ids.length - new Set(ids).size;
}
