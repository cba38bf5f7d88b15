import { isoInstant } from '../../core/instant.ts';
import { CliError, EXIT } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';
import { paintFor } from '../terminal/paint.ts';
import { type Verdict, check } from './checker/verdict.ts';
import { overlapRunsOf, sendersOf, statsOf } from './checker/collect-evidence.ts';
import { verdictLines } from './checker/verdict-lines.ts';
import { type DemoOptions, type Stage, openStage } from './stage.ts';
import { killAgainAndAgain } from './kills.ts';
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
    await stage.pause(times.to - stage.clock.now());
    stage.phase = 'the last runs end';
    const isDrained = await stage.until(() => hasEnded(watch), DRAINED_WITHIN_MS);
    stage.phase = 'done';
    await watch.stop();
    await watch.look();
    return await conclude(stage, { surroundings, isDrained });
  } catch (error) {
    if (!surroundings.signal.aborted) throw error;
    throw new CliError(EXIT.interrupted, 'interrupted; nothing of the demo is left');
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
    throw failed(`${schedules.length} schedules take too long to create here; try fewer`);
  stage.times = times;
  stage.say(`${schedules.length} schedules fire from ${isoInstant(from)} on, for ${options.seconds} s`);
  return times;
}

function hasEnded({ stats, dueInAll }: Watch): boolean {
  return stats !== null && stats.openRuns === 0 && stats.totalRuns >= dueInAll();
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
