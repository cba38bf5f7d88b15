import { isoInstant } from '../../core/instant.ts';
import { CliError, EXIT } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';
import { paintFor } from '../terminal/paint.ts';
import { claimsOf, overlapRunsOf, sendersOf, statsOf } from './checker/collect-evidence.ts';
import type { DemoInstance } from './cluster/three-instances.ts';
import { type Stage, type DemoOptions, openStage } from './stage.ts';
import { type Verdict, check } from './checker/verdict.ts';
import { verdictLines } from './checker/verdict-lines.ts';
import { batchItemOf } from './load/schedule-mix.ts';
import { type Watch, startWatch } from './watch.ts';

/** For what hangs: a slow machine is done long before. */
const STARTED_WITHIN_MS = 120_000;
/** A dead instance is noticed within 12 s, a lost lease within 5; a run may be lost more than once. */
const DRAINED_WITHIN_MS = 60_000;
const BATCH = 1_000;

/** `firelock demo`; answers the exit code. Whatever becomes of it, nothing of it is left. */
export async function runDemo(options: DemoOptions, surroundings: Surroundings): Promise<number> {
  const stage = await openStage(options, surroundings);
  const watch = startWatch(stage);
  try {
    await startInstances(stage);
    const times = await createSchedules(stage);
    stage.phase = 'firing';
    await killAgainAndAgain(stage, times);
    await stage.wait(times.to - stage.clock.now());
    stage.phase = 'the last runs end';
    const isDrained = await stage.until(() => hasEnded(watch), DRAINED_WITHIN_MS);
    stage.phase = 'done';
    await watch.stop();
    await watch.look();
    return await conclude(stage, { surroundings, isDrained });
  } catch (error) {
    if (!surroundings.signal.aborted) throw error;
    throw new CliError(EXIT.interrupted, 'interrupted; the demo has removed everything that it started');
  } finally {
    await Promise.all([watch.stop(), stage.close()]);
  }
}

function failed(why: string): CliError {
  return new CliError(EXIT.failed, why);
}

async function startInstances(stage: Stage): Promise<void> {
  const { cluster } = stage;
  stage.say('a PostgreSQL of its own is made; that takes a few seconds');
  if (!(await stage.until(() => cluster.databaseRuns, STARTED_WITHIN_MS)))
    throw failed('PostgreSQL did not start');
  stage.phase = 'the instances start';
  for (const { number } of cluster.instances) cluster.start(number);
  const areReady = () => cluster.readyUrls().length === cluster.instances.length;
  if (!(await stage.until(areReady, STARTED_WITHIN_MS))) throw failed('the instances did not become ready');
  for (const { number, pid, url } of cluster.instances)
    stage.say(`instance ${number} is ready: pid ${pid}, ${url}`);
}

/** Answers when they fire. */
async function createSchedules(stage: Stage): Promise<{ from: number; to: number }> {
  const { schedules, options, clock, client, receiver } = stage;
  // Enough for all to be there before the first is due, also where the machine stalls for some seconds.
  const from = Math.ceil((clock.now() + 5_000 + 5 * schedules.length) / 1000) * 1000;
  const times = { from, to: from + options.seconds * 1000 };
  for (let done = 0; done < schedules.length; done += BATCH) {
    const items = schedules
      .slice(done, done + BATCH)
      .map((schedule) => batchItemOf(schedule, { ...times, receiverUrl: receiver.url }));
    await client.call('POST', 'schedules/batch', { items });
  }
  if (clock.now() >= from)
    throw failed(`${schedules.length} schedules take too long to create on this machine; try fewer`);
  stage.times = times;
  stage.say(`${schedules.length} schedules fire from ${isoInstant(from)} on, for ${options.seconds} s`);
  return times;
}

function hasEnded({ stats, dueInAll }: Watch): boolean {
  return stats?.openRuns === 0 && stats.totalRuns >= dueInAll();
}

async function conclude(
  stage: Stage,
  { surroundings, isDrained }: { surroundings: Surroundings; isDrained: boolean },
): Promise<number> {
  const { cluster, screen } = stage;
  const stats = await statsOf(stage.client);
  const verdict = await verdictOn(stage, stats);
  const told = {
    ...{ verdict, kills: cluster.kills.length, lost: stats.lostRuns, recovered: stats.recoveredRuns },
    undrainedAfterMs: isDrained ? null : DRAINED_WITHIN_MS,
  };
  screen.end(verdictLines(told, paintFor(surroundings.out.isTerminal, surroundings.env)));
  return verdict.ok ? EXIT.done : EXIT.failed;
}

async function verdictOn(stage: Stage, ends: Awaited<ReturnType<typeof statsOf>>): Promise<Verdict> {
  const { client, schedules, times, cluster, deliveries } = stage;
  if (times === null) throw failed('nothing has fired');
  const { openRuns, failedRuns, unknownRuns, abandonedRuns, cancelledRuns } = ends;
  return check({
    ...{ schedules, ...times, deliveries: deliveries.all, kills: cluster.killedIds },
    overlapRuns: await overlapRunsOf(client),
    senders: await sendersOf(client, deliveries.all),
    ends: { openRuns, failedRuns, unknownRuns, abandonedRuns, cancelledRuns },
  });
}

/**
 * At the beginning of a second most fires are due, and often one instance takes them all. It is killed when it has many of them; when
 * this time is up, the one that has most.
 */
const HAS_MANY_WITHIN_MS = 800;
const RESTARTED_AFTER_MS = 2_000;
const GONE_WITHIN_MS = 10_000;

/** Kills one instance after the other with -9, every so many seconds while fires are due, and starts each again. */
async function killAgainAndAgain(stage: Stage, { from, to }: { from: number; to: number }): Promise<void> {
  const everyMs = stage.options.killEvery * 1000;
  for (let turn = 1; ; turn += 1) {
    const at = from + turn * everyMs;
    if (at >= to) return;
    await stage.wait(at - stage.clock.now());
    const victim = await victimOf(stage, turn);
    // Of the others one at least is to go on; a slow machine is given time until the next turn.
    if (victim !== null) await killAndRestart(stage, victim);
  }
}

async function victimOf(stage: Stage, turn: number): Promise<DemoInstance | null> {
  const { clock, cluster, client, schedules } = stage;
  const limit = clock.monotonic() + HAS_MANY_WITHIN_MS;
  for (;;) {
    await stage.wait(0);
    const claims = await claimsOf(client).catch(() => new Map<string, number>());
    const claimed = ({ instanceId }: DemoInstance) => claims.get(instanceId ?? '') ?? 0;
    const ready = cluster.instances.filter(({ state }) => state === 'ready');
    if (ready.length < 2) return null;
    // Where none has more than another they take turns.
    const inTurn = [...ready.slice(turn % ready.length), ...ready.slice(0, turn % ready.length)];
    const most = inTurn.reduce((one, other) => (claimed(other) > claimed(one) ? other : one));
    if (claimed(most) >= schedules.length / 8 || clock.monotonic() >= limit) return most;
  }
}

async function killAndRestart(stage: Stage, { number, pid, instanceId }: DemoInstance): Promise<void> {
  const { cluster, client } = stage;
  cluster.kill(number);
  const kill = cluster.kills.at(-1);
  if (!(await stage.until(() => kill?.to !== Infinity, GONE_WITHIN_MS)))
    throw new CliError(
      EXIT.failed,
      `instance ${number} (pid ${pid}) was killed with -9, but its process did not end`,
    );
  const claims = await claimsOf(client).catch(() => null);
  const claimed = claims?.get(instanceId ?? '');
  stage.say(
    `kill -9 of instance ${number} (pid ${pid})${claimed === undefined ? '' : `, which held ${runsOf(claimed)}`}`,
  );
  await stage.wait(RESTARTED_AFTER_MS);
  cluster.start(number);
}

function runsOf(count: number): string {
  return count === 1 ? '1 run' : `${count} runs`;
}
