import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../../scenario.ts';
import { startDaemonOf } from '../processes/daemon.ts';
import { type Hosts, latenessOf, startHosts } from '../processes/hosts.ts';
import { putSchedules } from '../schedules.ts';
import { percentile } from './statistics.ts';
import { nextWhole, sleepUntil, startCpuMeter } from './vitals.ts';

/** Hosts that answer, which are measured, beside others. */
export interface HostLoad {
  hosts: number;
  firesPerSecondOfHost: number;
  others: { hosts: number; firesPerSecondOfHost: number; areSilent: boolean };
  /** How long an attempt at a silent host holds its slot. */
  timeoutSeconds: number;
  /** Before the measured period: as long as it takes until the slots of silent hosts hang, and their attempts time out. */
  settleSeconds: number;
  seconds: number;
}

export interface HostPeriod {
  /** Of the hosts that are measured. */
  latenessMs: { p50: number; p99: number; max: number };
  fires: number;
  /** Of those, the ones that had not arrived in the end; they count as late as that. */
  missing: number;
  cpuSeconds: { daemons: number | null; postgres: number | null };
}

/** In the end no measurement waits for what hangs, and that it is cut off is no news. */
const VARIABLES = { FIRELOCK_SHUTDOWN_SECONDS: '1', LOG_LEVEL: 'error' };
const POLL_MS = 200;
const LATEST_MS = 30_000;

/** A daemon and a database of their own, so that none begins with what another one left undone. */
export async function measureHosts(bench: Bench, load: HostLoad): Promise<HostPeriod> {
  const hosts = await startHosts(load.hosts + load.others.hosts);
  try {
    if (load.others.areSilent) hosts.silence(load.hosts);
    const database = await bench.server.createDatabase();
    try {
      const daemon = await startDaemonOf(bench, database, VARIABLES);
      try {
        await putSchedules(daemon.url, itemsOf(hosts, load));
        await sleep(load.settleSeconds * 1000);
        return await measure(bench, load, hosts, daemon.pid);
      } finally {
        await daemon.stop();
      }
    } finally {
      await database.drop();
    }
  } finally {
    await hosts.stop();
  }
}

async function measure(bench: Bench, load: HostLoad, hosts: Hosts, pid: number): Promise<HostPeriod> {
  const from = nextWhole(1000, 0);
  await sleepUntil(from - 1);
  await hosts.take();
  const cpu = startCpuMeter(bench.server, [pid]);
  const to = from + load.seconds * 1000;
  await sleepUntil(to - 1);
  const cpuSeconds = cpu.read();
  // What was due by then and comes late belongs to it.
  const expected = load.hosts * load.firesPerSecondOfHost * load.seconds;
  const isMeasured = (host: number) => host < load.hosts;
  const arrived = latenessOf(await hosts.take(), { from, to }, isMeasured);
  for (let waited = 0; arrived.length < expected && waited < LATEST_MS; waited += POLL_MS) {
    await sleep(POLL_MS);
    arrived.push(...latenessOf(await hosts.take(), { from, to }, isMeasured));
  }
  if (arrived.length > expected) throw new Error(`${arrived.length} instead of ${expected} fires arrived`);
  const missing = expected - arrived.length;
  const lateness = [...arrived, ...new Array<number>(missing).fill(LATEST_MS)];
  const [p50 = NaN, p99 = NaN, max = NaN] = [0.5, 0.99, 1].map((share) => percentile(lateness, share));
  return { latenessMs: { p50, p99, max }, fires: expected, missing, cpuSeconds };
}

function itemsOf(hosts: Hosts, { hosts: measured, firesPerSecondOfHost, others, timeoutSeconds }: HostLoad) {
  return hosts.urls.flatMap((url, host) =>
    Array.from({ length: host < measured ? firesPerSecondOfHost : others.firesPerSecondOfHost }, (_, index) => ({
      id: `host-${host}-${index}`,
      cron: '* * * * * *',
      timeoutSeconds,
      target: { type: 'http', url },
    })),
  );
}
