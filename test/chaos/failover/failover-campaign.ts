import { rm } from 'node:fs/promises';
import { runCampaign, USUAL } from '../campaign.ts';
import type { Definition } from '../checker/history.ts';
import { FAULTLESS } from '../cluster/receiver.ts';
import { plain } from '../load/load-definitions.ts';
import { type EditsTrial, type ResumeTrial, countedBy, loggedIn, tryEdits, tryResume } from './trials.ts';
import { type FailoverReport, reportOf } from './failover-report.ts';
import { type Failover, type Kind, failOver } from './failovers.ts';
import { type Mode, type Programs, startPatroniCluster } from './patroni-cluster.ts';
import type { Replication } from './patroni-node.ts';

interface FailoverOptions {
  programs: Programs;
  mode: Mode;
  replication: Replication;
  minutes: number;
  seed: number;
  schedules: number;
  kinds: readonly Kind[];
  /** For how long standbys get nothing before the primary is killed, where commits are to be lost. */
  lagSeconds: number;
  root: string;
  say: (line: string) => void;
}

export const KINDS_OF: Record<Replication, readonly Kind[]> = {
  sync: ['kill', 'freeze', 'switchover'],
  async: ['laggingKill', 'freeze', 'switchover'],
};
const INSTANCES = 3;
const DRAIN_SECONDS = 150;

/** A load on three daemons with their usual times, while their PostgreSQL moves from node to node. */
export async function runFailovers(options: FailoverOptions): Promise<FailoverReport> {
  const { programs, mode, replication, minutes, seed, schedules, root, say } = options;
  const cluster = await startPatroniCluster({ programs, replication });
  say('the cluster is whole');
  const lagMs = options.lagSeconds * 1000;
  const failovers: Failover[] = [];
  let metric = NaN;
  let edits: EditsTrial | null = null;
  let resumed: ResumeTrial | null = null;
  const result = await runCampaign({
    ...{ seed, schedules, root, say },
    instances: INSTANCES,
    editEveryMs: Infinity,
    fireEveryMs: Infinity,
    disturb: failOver({
      ...{ cluster, minutes, lagMs, kinds: options.kinds, log: failovers },
      atEnd: async ({ instances }) => {
        metric = await countedBy(instances);
      },
    }),
    ...(replication === 'sync'
      ? {}
      : {
          afterwards: async (deps) => {
            edits = await tryEdits(deps, { cluster, lagMs });
            resumed = await tryResume(deps, { cluster, root, lagMs });
          },
        }),
    rates: FAULTLESS,
    drainSeconds: DRAIN_SECONDS,
    times: USUAL,
    variables: { DATABASE_URL: cluster.urlOf(mode) },
    definitionOf: everySecond,
    cluster: cluster.database,
  }).finally(() => cluster.stop());
  const told = { metric, logLines: await loggedIn(result.directory, INSTANCES) };
  const report = reportOf(result, { mode, replication, seed, failovers, told, edits, resumed });
  if (report.ok) await rm(result.directory, { recursive: true, force: true });
  return report;
}

/** Every second; half of them at most once. */
function everySecond(index: number): Definition {
  const delivery = index % 2 === 0 ? 'atLeastOnce' : 'atMostOnce';
  return { ...plain(0), delivery, timeoutSeconds: 5 };
}
