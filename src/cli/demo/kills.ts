import { CliError, EXIT } from '../exit-codes.ts';
import { claimsOf } from './checker/collect-evidence.ts';
import type { DemoInstance } from './cluster/three-instances.ts';
import type { Stage } from './stage.ts';

/**
 * At the beginning of a second most fires are due, and often one instance takes them all. It is killed when it holds many of them; when
 * this time is up, the one that holds most.
 */
const HOLDS_MANY_WITHIN_MS = 800;
const RESTARTED_AFTER_MS = 2_000;
const GONE_WITHIN_MS = 10_000;

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
    const victim = await victimOf(stage, turn);
    // Of the others one at least is to go on; a slow machine is given time until the next turn.
    if (victim !== null) await killAndRestart(stage, victim);
  }
}

async function victimOf(stage: Stage, turn: number): Promise<DemoInstance | null> {
  const { clock, cluster, client, schedules } = stage;
  const limit = clock.monotonic() + HOLDS_MANY_WITHIN_MS;
  for (;;) {
    await stage.pause(0);
    const claims = await claimsOf(client).catch(() => new Map<string, number>());
    const held = ({ instanceId }: DemoInstance) => claims.get(instanceId ?? '') ?? 0;
    const ready = cluster.instances.filter(({ state }) => state === 'ready');
    if (ready.length < 2) return null;
    // Where none holds more than another they take turns.
    const inTurn = [...ready.slice(turn % ready.length), ...ready.slice(0, turn % ready.length)];
    const most = inTurn.reduce((one, other) => (held(other) > held(one) ? other : one));
    if (held(most) >= schedules.length / 8 || clock.monotonic() >= limit) return most;
  }
}

async function killAndRestart(stage: Stage, { number, pid, instanceId }: DemoInstance): Promise<void> {
  const { cluster, client } = stage;
  cluster.kill(number);
  const kill = cluster.kills.at(-1);
  if (!(await stage.until(() => kill?.to !== Infinity, GONE_WITHIN_MS)))
    throw new CliError(EXIT.failed, `instance ${number} (pid ${pid}) was killed and does not end`);
  const claims = await claimsOf(client).catch(() => null);
  const held = claims?.get(instanceId ?? '');
  stage.say(
    `kill -9 of instance ${number} (pid ${pid})${held === undefined ? '' : `, which held ${runsOf(held)}`}`,
  );
  await stage.pause(RESTARTED_AFTER_MS);
  cluster.start(number);
}

function runsOf(count: number): string {
  return count === 1 ? '1 run' : `${count} runs`;
}
