import { isoInstant } from '../../core/instant.ts';
import type { DemoInstance } from './demo-instances.ts';
import type { DemoStage } from './demo-stage.ts';
import { batchItemOf, dueMoments } from './schedule-mix.ts';
import { type SentAttempt, check } from './verdict.ts';
import { verdictLines } from './verdict-lines.ts';

/** For what hangs: a slow machine is done long before. */
const STARTED_WITHIN_MS = 120_000;
/** A dead instance is noticed within 12 s, a lost lease within 5; a run may be lost more than once. */
const DRAINED_WITHIN_MS = 60_000;
const BATCH = 1_000;

/** The whole demo; answers whether no fire was lost. */
export async function playDemo(stage: DemoStage): Promise<boolean> {
  await startInstances(stage);
  const times = await createSchedules(stage);
  await killAgainAndAgain(stage, times);
  await stage.wait(times.to - stage.clock.now());
  const due = stage.schedules.reduce((sum, { rule }) => sum + dueMoments(rule, times).length, 0);
  const hasEnded = () => stage.stats?.openRuns === 0 && stage.stats.totalRuns >= due;
  const isDrained = await stage.until(hasEnded, DRAINED_WITHIN_MS);
  const stats = await stage.readStats();
  const { schedules, deliveries, instances } = stage;
  const senders = await sendersOf(stage);
  const verdict = check({
    schedules,
    ...times,
    deliveries,
    kills: instances.killedIds,
    senders,
    ends: stats,
  });
  const { lostRuns: lost, recoveredRuns: recovered } = stats;
  const lines = verdictLines({ verdict, kills: instances.kills.length, lost, recovered, isDrained });
  process.stdout.write(`\n${lines.join('\n')}\n`);
  return verdict.ok;
}

async function startInstances(stage: DemoStage): Promise<void> {
  const { instances } = stage;
  for (const one of instances.all) instances.start(one);
  const areReady = () => instances.ready.length === instances.all.length;
  if (!(await stage.until(areReady, STARTED_WITHIN_MS)))
    throw new Error('the instances did not become ready');
  for (const { number, pid, url } of instances.all)
    stage.say(`instance ${number} is ready: pid ${pid}, ${url}`);
}

interface Times {
  from: number;
  to: number;
}

/** Answers when they fire. */
async function createSchedules(stage: DemoStage): Promise<Times> {
  const { schedules, options, clock, instances } = stage;
  const receiverUrl = await stage.receiverUrl();
  // Enough for all to be there before the first is due, also where the machine stalls for some seconds.
  const from = Math.ceil((clock.now() + 5_000 + 5 * schedules.length) / 1000) * 1000;
  const times = { from, to: from + options.seconds * 1000 };
  for (let done = 0; done < schedules.length; done += BATCH) {
    const some = schedules.slice(done, done + BATCH);
    const items = some.map((schedule) => batchItemOf(schedule, { ...times, receiverUrl }));
    await instances.call('POST', 'schedules/batch', { items });
  }
  if (clock.now() >= from)
    throw new Error(`${schedules.length} schedules take too long to create on this machine; try fewer`);
  stage.times = times;
  stage.say(`${schedules.length} schedules fire from ${isoInstant(from)} on, for ${options.seconds} s`);
  return times;
}

/**
 * At the beginning of a second most fires are due, and often one instance takes them all. It is killed when it has many of them; when
 * this time is up, the one that has most.
 */
const HAS_MANY_WITHIN_MS = 800;
const RESTARTED_AFTER_MS = 2_000;
const GONE_WITHIN_MS = 10_000;

/** Kills one instance after the other with -9, every so many seconds while fires are due, and starts each again. */
async function killAgainAndAgain(stage: DemoStage, { from, to }: Times): Promise<void> {
  const everyMs = stage.options.killEvery * 1000;
  for (let at = from + everyMs; at < to; at += everyMs) {
    await stage.wait(at - stage.clock.now());
    const victim = await victimOf(stage);
    // Of the others one at least is to go on; a slow machine is given time until the next turn.
    if (victim !== null) await killAndRestart(stage, victim);
  }
}

async function victimOf(stage: DemoStage): Promise<DemoInstance | null> {
  const { clock, instances, schedules } = stage;
  const limit = clock.monotonic() + HAS_MANY_WITHIN_MS;
  for (;;) {
    await stage.wait(0);
    const claimed = await claimsOf(stage);
    if (instances.ready.length < 2) return null;
    // Where none has more than another they take turns.
    const inTurn = instances.ready.sort((one, other) => one.kills - other.kills);
    const most = inTurn.reduce((one, other) => (claimed(other) > claimed(one) ? other : one));
    if (claimed(most) >= schedules.length / 8 || clock.monotonic() >= limit) return most;
  }
}

/** How many runs an instance has claimed and not settled, also a dead one. */
async function claimsOf({ instances }: DemoStage): Promise<(instance: DemoInstance) => number> {
  const answer = await instances.call('GET', 'instances').catch(() => ({ items: [] }));
  const { items } = answer as { items: { id: string; inFlight: number }[] };
  const byId = new Map(items.map(({ id, inFlight }) => [id, inFlight]));
  return ({ ids }) => byId.get(ids.at(-1) ?? '') ?? 0;
}

async function killAndRestart(stage: DemoStage, instance: DemoInstance): Promise<void> {
  const { instances } = stage;
  const { number, pid } = instance;
  const kill = instances.kill(instance);
  if (!(await stage.until(() => kill.to !== Infinity, GONE_WITHIN_MS)))
    throw new Error(`instance ${number} (pid ${pid}) was killed with -9, but its process did not end`);
  const count = (await claimsOf(stage))(instance);
  stage.say(
    `kill -9 of instance ${number} (pid ${pid}), which held ${count} ${count === 1 ? 'run' : 'runs'}`,
  );
  await stage.wait(RESTARTED_AFTER_MS);
  instances.start(instance);
}

/** Who made which attempt of the runs that came more than once. */
async function sendersOf({ instances, deliveries }: DemoStage): Promise<Map<string, SentAttempt[]>> {
  const senders = new Map<string, SentAttempt[]>();
  for (const [runId, { length }] of Map.groupBy(deliveries, (delivery) => delivery.runId)) {
    if (length === 1) continue;
    const { attemptLog } = (await instances.call('GET', `runs/${runId}`)) as { attemptLog: SentAttempt[] };
    senders.set(runId, attemptLog);
  }
  return senders;
}
