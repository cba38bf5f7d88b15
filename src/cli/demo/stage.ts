import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import type { Instant } from '../../core/instant.ts';
import { CliError, EXIT } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';
import { type ApiClient, createApiClient } from './cluster/api-client.ts';
import { type Cluster, createCluster } from './cluster/three-instances.ts';
import { type Keeper, startKeeper } from './cluster/keeper.ts';
import { type Deliveries, createDeliveries } from './load/delivery.ts';
import { type DemoReceiver, startReceiver } from './load/receiver.ts';
import { type DemoSchedule, makeSchedules } from './load/schedule-mix.ts';
import { type Worker, startWorker } from './load/worker.ts';
import { type Screen, createScreen } from './screen/screen.ts';
import type { DemoEvent } from './screen/frame.ts';

export interface DemoOptions {
  seconds: number;
  schedules: number;
  killEvery: number;
}

/** Everything that takes part, and the time as it goes on. */
export interface Stage extends Pace {
  readonly options: DemoOptions;
  readonly schedules: readonly DemoSchedule[];
  readonly clock: Clock;
  readonly cluster: Cluster;
  readonly client: ApiClient;
  readonly deliveries: Deliveries;
  readonly receiver: DemoReceiver;
  readonly screen: Screen;
  readonly events: readonly DemoEvent[];
  /** What is going on, in words. */
  phase: string;
  /** When schedules fire: from `from` on, and before `to`. Null: they do not exist yet. */
  times: { from: Instant; to: Instant } | null;
  say(text: string): void;
  /** Ends all of it; afterwards no process and no directory is left. */
  close(): Promise<void>;
}

export async function openStage(options: DemoOptions, surroundings: Surroundings): Promise<Stage> {
  const clock = systemClock;
  const { signal, env } = surroundings;
  const screen = createScreen(surroundings);
  const events: DemoEvent[] = [];
  const say = (text: string) => {
    const at = clock.now();
    const event = { at, atMs: Math.max(0, at - (stage.times?.from ?? at)), text };
    events.push(event);
    screen.say(event);
  };
  const deliveries = createDeliveries();
  const receiver = await startReceiver({
    clock,
    deliveries,
    onAccepted: (runId) => {
      worker.complete(runId);
    },
  });
  const cluster: Cluster = createCluster({ clock, keeper: () => keeper, onEvent: say });
  const client = createApiClient(() => cluster.readyUrls());
  const worker: Worker = startWorker({ clock, client, deliveries });
  const keeper: Keeper = startKeeper({ env, hear: (message) => cluster.hear(message) });
  const pace = interruptiblePace({ clock, signal, fault: () => cluster.fault });
  const stage: Stage = {
    ...{ options, clock, cluster, client, deliveries, receiver, screen, events, ...pace },
    ...{ schedules: makeSchedules(options.schedules), phase: 'PostgreSQL starts', times: null, say },
    close: async () => {
      await Promise.all([worker.stop(), keeper.end()]);
      receiver.close();
    },
  };
  return stage;
}

/** How the demo waits: it goes on at once where it was interrupted or cannot go on. */
interface Pace {
  /** @throws where Ctrl-C was pressed, or the demo cannot go on */
  wait(ms: number): Promise<void>;
  /** Whether it came true within the limit. @throws as wait does */
  until(isTrue: () => boolean, limitMs: number): Promise<boolean>;
}

interface Options {
  clock: Clock;
  signal: AbortSignal;
  /** Why it cannot go on; null: it can. */
  fault: () => string | null;
}

const LOOK_MS = 50;

function interruptiblePace({ clock, signal, fault }: Options): Pace {
  const wait = async (ms: number) => {
    const end = clock.monotonic() + ms;
    for (;;) {
      const reason = fault();
      if (reason !== null) throw new CliError(EXIT.failed, reason);
      const left = end - clock.monotonic();
      if (left <= 0) return;
      await sleep(Math.min(left, LOOK_MS), undefined, { signal });
    }
  };
  const until = async (isTrue: () => boolean, limitMs: number) => {
    const limit = clock.monotonic() + limitMs;
    while (!isTrue()) {
      if (clock.monotonic() >= limit) return false;
      await wait(LOOK_MS);
    }
    return true;
  };
  return { wait, until };
}
