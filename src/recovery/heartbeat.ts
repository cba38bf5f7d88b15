/**
 * Guarantees: this instance is listed as living before it locks or claims anything. A silent peer is declared dead by the database's
 *   clock, and only while nothing but the peer can be the reason of its silence.
 * Transaction: one statement a beat, one more for a death, one that reads whether the newest commits are still there.
 * If the process dies here: its beats stop, and the others declare it dead.
 */
import { setTimeout } from 'node:timers/promises';
import { afterBeat, type BeatStreak, LEASE_MARGIN_SECONDS, mayDeclareDead } from '../core/time/lease.ts';
import type { ConfirmedCommit, ConfirmedCommits } from '../runtime/confirmed-commits.ts';
import type { DatabaseClock } from '../runtime/clock.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import type { InstallationWatch } from '../runtime/installation-watch.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import type { LoopDeps } from '../postgres/database.ts';
import {
  type HeartbeatAnswer,
  type Instance,
  beatIfListed,
  declareDeadIfSilent,
  registerUnlessObserving,
} from '../store/instances/instances.ts';
import { commitsGone } from '../store/runs/commits-gone.ts';

interface HeartbeatDeps extends LoopDeps {
  databaseClock: DatabaseClock;
  lease: Lease;
  /** The newest of this instance. */
  commits: ConfirmedCommits;
  installation: Pick<InstallationWatch, 'learn'>;
  /** What the others know about this instance, except its id. */
  instance: Omit<Instance, 'id'>;
  intervalSeconds: number;
  /**
   * Writes outcomes that came during an outage; called before the first beat after it, so that they are written under
   * valid claims.
   */
  flush: () => Promise<void>;
  /** This instance may not work any more: since it was declared dead, the instances of this database only observe. */
  onObserving: () => void;
  /** Claims or fire-locks may have become free. */
  wakeRecovery: () => void;
}

/** Renewing the lease matters more than waiting outcomes: they can be written after it. */
const FLUSH_LIMIT_MS = 1_000;

// oxlint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createHeartbeat(deps: HeartbeatDeps): Loop {
  const { database, clock, databaseClock, events, lease, commits, instance, intervalSeconds } = deps;
  const { ttlSeconds } = instance;
  /** Short enough for a second try while the lease is valid. */
  const limitMs = Math.max(1_000, ((ttlSeconds - LEASE_MARGIN_SECONDS - intervalSeconds) / 2) * 1000);
  let streak: BeatStreak | null = null;
  /** The last beat under the present id that the database confirmed. */
  let confirmedAt: number | null = null;
  let failing = false;

  async function beat(): Promise<number> {
    if (failing) await Promise.race([deps.flush(), setTimeout(FLUSH_LIMIT_MS)]);
    failing = true;
    const { instanceId } = lease;
    const sent = lease.moment();
    const noted = commits.noted();
    const answer = await database.run((db) => beatIfListed(db, instanceId), limitMs);
    const answeredAt = clock.monotonic();
    databaseClock.sample(answer.now, sent.monotonic);
    // Before the lease is renewed: no run may be sent during maintenance that holds runs.
    deps.installation.learn(answer.installation);
    const isGone = emitLostCommits(answer);
    if (isGone) commits.forget(noted);
    streak = afterBeat(streak, { sentAt: sent.monotonic, answeredAt, databaseNow: answer.now }, ttlSeconds);
    if (!answer.listed) return await replace();
    confirmedAt = answer.now;
    lease.renew(sent);
    events.emit({ type: 'heartbeat', roundTripMs: answeredAt - sent.monotonic });
    await declareDead(streak, answer.overdue);
    if (!isGone && noted.length > 0) await lookFor(noted);
    failing = false;
    return intervalSeconds * 1000;
  }

  /** An instance that was declared dead comes back as another one: its earlier claims no longer belong to it. */
  async function replace(): Promise<number> {
    const previousId = lease.instanceId;
    lease.replace();
    confirmedAt = null;
    events.emit({ type: 'instanceReplaced', instanceId: lease.instanceId, previousId });
    await register();
    failing = false;
    return 0;
  }

  async function register(): Promise<void> {
    const { host, zoneData } = instance;
    const instanceId = lease.instanceId;
    const isListed = await database.run((db) => registerUnlessObserving(db, { ...instance, id: instanceId }));
    if (!isListed) {
      deps.onObserving();
      throw new Error('the instances of this database only observe: this one is not registered');
    }
    events.emit({ type: 'instanceRegistered', instanceId, host, zoneData });
  }

  async function declareDead(streakAtBeat: BeatStreak, overdue: HeartbeatAnswer['overdue']): Promise<void> {
    const silent = overdue.filter((peer) => mayDeclareDead(streakAtBeat, Math.max(ttlSeconds, peer.ttlSeconds)));
    if (silent.length === 0) return;
    const ids = silent.map((peer) => peer.id);
    const instanceIds = await database.run((db) => declareDeadIfSilent(db, lease.instanceId, ids));
    if (instanceIds.length === 0) return;
    events.emit({ type: 'instancesDeclaredDead', instanceIds });
    deps.wakeRecovery();
  }

  function emitLostCommits({ previous }: HeartbeatAnswer): boolean {
    if (confirmedAt === null || (previous !== null && previous >= confirmedAt)) return false;
    events.emit({ type: 'databaseWentBack', lostMs: previous === null ? null : confirmedAt - previous });
    return true;
  }

  /** All heartbeats may be there, and later commits not. Where that cannot be seen now, the next beat looks again. */
  async function lookFor(noted: readonly ConfirmedCommit[]): Promise<void> {
    const gone = await database.run((db) => commitsGone(db, noted), limitMs).catch(() => null);
    if (gone === null) return;
    commits.forget(noted);
    const [first] = gone;
    if (!first) return;
    const newest = noted.reduce((latest, { at }) => Math.max(latest, at), first.at);
    events.emit({ type: 'databaseWentBack', lostMs: newest - first.at });
  }

  const loop = createLoop({ name: 'heartbeat', clock, body: beat, events });
  return {
    ...loop,
    start: async () => {
      // Done before any other work: any instance may take the locks and claims of an unlisted instance.
      await register();
      await loop.start();
    },
  };
}
