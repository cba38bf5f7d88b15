import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Disturb } from '../campaign.ts';
import { type FaultDeps, recorded } from './faults.ts';
import type { Disturbance } from '../checker/history.ts';
import type { Instance } from '../cluster/instance.ts';

/** The program that knows failpoints; given to a campaign as `program`. */
export const FAILPOINT_PROGRAM = join(import.meta.dirname, 'daemon-with-failpoints.ts');

export interface Failpoint {
  /** `WHEN:STEP`, as daemon-with-failpoints.ts says. */
  at: string;
  action: 'kill' | 'stop' | 'lose';
  /** At which time of coming there; else the first. */
  count?: number;
  /** How long it stays frozen; else somewhat longer than its TTL. */
  stopMs?: number;
}

/** Between which steps of every fire a process can end or freeze. */
export const GAPS = [
  'after:takeFireLocks', // locked, not planned
  'before:recordPlanned', // planned, not recorded
  'after:recordPlanned', // recorded and claimed, not sent
  'after:claimMore', // claimed by the claiming statement, not sent
  'before:startBatch', // about to write that an attempt begins
  'after:startBatch', // that is written, nothing is sent
  'after:mayStart', // looked at the lease, nothing is sent
  'after:deliver', // acknowledged, not settled
  'before:settlePlain', // about to settle
  'after:settlePlain', // settled, not known here
  'before:applyNext', // about to do what follows from ends
  'after:applyNext', // that is done, and deleted; not known here
] as const;

/** Those that are only come to when others are lost, or when a target is to be asked. */
export const RARE: readonly Failpoint[] = [
  { at: 'before:takeOver', action: 'stop' }, // found lost runs
  { at: 'after:takeOver', action: 'kill' }, // took them over, and emitted nothing
  { at: 'after:lookup', action: 'stop' }, // asked the target, nothing follows
  { at: 'after:lookup', action: 'kill' },
];

const REACHED_LIMIT_MS = 120_000;
/** Of the one that nothing happens to: the others come first to what is due, and so to their failpoints. */
const WITNESS_DELAY_MS = 25;

/**
 * Goes through the failpoints, on all instances but the last at once, so that one instance is always there to take over; the
 * first two of them wait for the rare ones. A failpoint that is not reached in time is told in `unreached`.
 */
export function throughFailpoints(
  { often, rare }: { often: readonly Failpoint[]; rare: readonly Failpoint[] },
  unreached: string[],
): Disturb {
  return async (deps, log) => {
    const queue = [...often];
    const rareQueue = [...rare];
    const witness = deps.instances.at(-1);
    witness?.proxy.delay(WITNESS_DELAY_MS);
    const directory = mkdtempSync(join(tmpdir(), 'firelock-failpoints-'));
    await Promise.all(
      deps.instances.slice(0, -1).map(async (instance, index) => {
        const take = () => (index < 2 ? rareQueue.shift() : undefined) ?? queue.shift();
        for (let next = take(); next; next = take()) {
          const file = join(directory, `${instance.name}-${queue.length}-${rareQueue.length}`);
          if (!(await through(deps, log, instance, next, file))) unreached.push(`${next.at}:${next.action}`);
        }
      }),
    );
    rmSync(directory, { recursive: true });
    witness?.proxy.delay(0);
  };
}

async function through(
  deps: FaultDeps,
  log: Disturbance[],
  instance: Instance,
  failpoint: Failpoint,
  file: string,
): Promise<boolean> {
  const { at, action, count = 1 } = failpoint;
  const { name } = instance;
  await recorded(deps, log, { kind: 'kill', instance: name }, async () => {
    instance.signal('SIGKILL');
    await instance.gone();
    deps.say(`${at}:${action} on ${name}`);
    instance.start({ CHAOS_FAILPOINT: `${at}:${action}:${count}`, CHAOS_FAILPOINT_FILE: file });
  });
  const limit = Date.now() + REACHED_LIMIT_MS;
  while (!existsSync(file) && Date.now() < limit) await sleep(POLL_MS);
  if (!existsSync(file)) return false;
  const reached: Disturbance = {
    kind: KINDS[action],
    instance: name,
    from: Date.now() - 2 * POLL_MS,
    to: Infinity,
  };
  log.push(reached);
  await undergo(deps, instance, failpoint);
  reached.to = Date.now();
  return true;
}

const POLL_MS = 50;
/** As what the checker knows it. */
const KINDS = { kill: 'kill', stop: 'freeze', lose: 'loseAnswers' } as const;

async function undergo(deps: FaultDeps, instance: Instance, { action, stopMs }: Failpoint): Promise<void> {
  if (action === 'stop') {
    while (instance.running() && !isStopped(instance.pid())) await sleep(20);
    await sleep(stopMs ?? 1.3 * deps.ttlMs);
    instance.signal('SIGCONT');
  }
  if (action === 'kill') await instance.gone();
  await sleep(500);
}

function isStopped(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.startsWith('T') ?? false;
  } catch {
    return true;
  }
}
