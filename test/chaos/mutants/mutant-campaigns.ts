import { setTimeout as sleep } from 'node:timers/promises';
import type { CampaignOptions, Disturb } from '../campaign.ts';
import { FAILPOINT_PROGRAM, type Failpoint, throughFailpoints } from '../faults/failpoints.ts';
import { recorded } from '../faults/faults.ts';

const SLOW_DATABASE_MS = 150;

/** Goes through these failpoints, on all instances but the last. */
export function through(failpoints: readonly Failpoint[]): Pick<CampaignOptions, 'disturb' | 'program'> {
  return { program: FAILPOINT_PROGRAM, disturb: throughFailpoints({ often: failpoints, rare: [] }, []) };
}

export function quietFor(ms: number): Disturb {
  return () => sleep(ms);
}

export function slowDatabase(ms: number): Disturb {
  return async (deps, log) => {
    for (const { proxy } of deps.instances) proxy.delay(SLOW_DATABASE_MS);
    await recorded(deps, log, { kind: 'delay', instance: '*' }, () => sleep(ms));
    for (const { proxy } of deps.instances) proxy.delay(0);
  };
}

/** So slow that a cut falls between two statements as often as not. */
export function cutWhileSlow(ms: number): Disturb {
  return async (deps, log) => {
    for (const { proxy } of deps.instances) proxy.delay(100);
    const until = Date.now() + ms;
    while (Date.now() < until) {
      await sleep(deps.random.between(900, 1_700));
      await recorded(deps, log, { kind: 'cut', instance: '*' }, async () => {
        for (const { proxy } of deps.instances) proxy.cut();
        await sleep(100);
      });
    }
    for (const { proxy } of deps.instances) proxy.delay(0);
  };
}

/** An instance that does not know of its claims leaves in good order: no other declares it dead. */
export async function leaveWithForgottenClaims(...[deps, log]: Parameters<Disturb>): Promise<void> {
  const often: Failpoint[] = [{ at: 'after:recordPlanned', action: 'lose' }];
  for (let round = 0; round < 3; round += 1) {
    await throughFailpoints({ often, rare: [] }, [])({ ...deps, instances: deps.instances.slice(0, 2) }, log);
    const [instance] = deps.instances;
    instance?.signal('SIGTERM');
    await instance?.gone();
    instance?.start();
    await instance?.becomesReady(60_000);
  }
}
