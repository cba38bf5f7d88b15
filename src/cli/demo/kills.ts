import { CliError, EXIT } from '../exit-codes.ts';
import type { DemoInstance } from './cluster/cluster.ts';
import type { Stage } from './stage.ts';

/** At the beginning of a second most fires are due. An instance is killed when many requests are under way, or when this time is up. */
const IN_THE_MIDDLE_WITHIN_MS = 800;
const RESTARTED_AFTER_MS = 2_000;
const GONE_WITHIN_MS = 10_000;
/** Within that, what was cut off by a death has been noticed. */
const NOTICED_AFTER_MS = 200;

/** Kills one instance after the other with -9, every so many seconds while fires are due, and starts each again. */
export async function killAgainAndAgain(
  stage: Stage,
  { from, to }: { from: number; to: number },
): Promise<void> {
  const everyMs = stage.options.killEvery * 1000;
  for (let turn = 1; ; turn += 1) {
    const at = from + turn * everyMs;
    if (at >= to) return;
    await stage.pause(at - stage.clock.now());
    await stage.until(() => stage.receiver.underWay >= stage.schedules.length / 8, IN_THE_MIDDLE_WITHIN_MS);
    const victim = victimOf(stage, turn);
    // Of the others one at least is to go on; a slow machine is given time until the next turn.
    if (victim !== null) await killAndRestart(stage, victim);
  }
}

function victimOf({ cluster: { instances } }: Stage, turn: number): DemoInstance | null {
  const ready = instances.filter(({ state }) => state === 'ready');
  if (ready.length < 2) return null;
  const next = instances[(turn - 1) % instances.length];
  return next !== undefined && ready.includes(next) ? next : (ready[0] ?? null);
}

async function killAndRestart(stage: Stage, { number, pid }: DemoInstance): Promise<void> {
  const { cluster, receiver } = stage;
  const before = receiver.cutOff;
  cluster.kill(number);
  const kill = cluster.kills.at(-1);
  if (!(await stage.until(() => kill?.to !== Infinity, GONE_WITHIN_MS)))
    throw new CliError(EXIT.failed, `instance ${number} (pid ${pid}) was killed and does not end`);
  await stage.pause(NOTICED_AFTER_MS);
  stage.say(
    `kill -9 of instance ${number} (pid ${pid}), in the middle of ${requestsOf(receiver.cutOff - before)}`,
  );
  await stage.pause(RESTARTED_AFTER_MS - NOTICED_AFTER_MS);
  cluster.start(number);
}

function requestsOf(count: number): string {
  return count === 1 ? '1 request' : `${count} requests`;
}
