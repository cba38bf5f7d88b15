import type { Clock } from '../../../runtime/clock.ts';
import type { Instant } from '../../../core/instant.ts';
import { answersReady } from './api-client.ts';
import type { Keeper, KeeperMessage } from './keeper.ts';

export const INSTANCES = 3;

export interface DemoInstance {
  readonly number: number;
  url: string;
  pid: number;
  state: 'starting' | 'ready' | 'killed';
  kills: number;
  /** Under which the others know it; null until it has said so. */
  instanceId: string | null;
}

/** One kill -9, and the ids of the instance that died by it. */
export interface Kill {
  number: number;
  pid: number;
  from: Instant;
  /** When the process was gone. */
  to: Instant;
}

interface Options {
  clock: Clock;
  keeper: () => Keeper;
  onEvent: (text: string) => void;
}

/** The three instances over all of their processes, as far as the keeper and their own answers tell. */
export interface Cluster {
  readonly instances: readonly DemoInstance[];
  readonly kills: readonly Kill[];
  /** Which kill an instance died by, by its id; absent: none. */
  readonly killedIds: ReadonlyMap<string, Kill>;
  /** Set when the demo cannot go on. */
  readonly fault: string | null;
  readonly databaseRuns: boolean;
  hear(message: KeeperMessage): void;
  start(number: number): void;
  kill(number: number): void;
  /** Asks those that are starting whether they are ready. */
  look(): Promise<void>;
  readyUrls(): string[];
}

export function createCluster(options: Options): Cluster {
  return new Members(options);
}

class Members implements Cluster {
  readonly instances: DemoInstance[] = Array.from({ length: INSTANCES }, (_, index) => ({
    ...{ number: index + 1, url: '', pid: 0, state: 'starting', kills: 0, instanceId: null },
  }));
  readonly kills: Kill[] = [];
  readonly killedIds = new Map<string, Kill>();
  fault: string | null = null;
  databaseRuns = false;
  /** Under which ids each process has been known. */
  private readonly ids = new Map<number, string[]>();
  private readonly saidDead = new Set<string>();
  private readonly options: Options;

  constructor(options: Options) {
    this.options = options;
  }

  start(number: number): void {
    this.of(number).state = 'starting';
    this.options.keeper().start(number);
  }

  kill(number: number): void {
    const instance = this.of(number);
    const at = this.options.clock.now();
    this.kills.push({ number, pid: instance.pid, from: at, to: Infinity });
    instance.state = 'killed';
    instance.kills += 1;
    this.options.keeper().kill(number);
  }

  async look(): Promise<void> {
    const starting = this.instances.filter(({ state, url }) => state === 'starting' && url !== '');
    await Promise.all(
      starting.map(async (instance) => {
        const { pid } = instance;
        const ready = await answersReady(instance.url);
        if (ready && instance.state === 'starting' && instance.pid === pid) instance.state = 'ready';
      }),
    );
  }

  readyUrls(): string[] {
    return this.instances.filter(({ state }) => state === 'ready').map(({ url }) => url);
  }

  hear(message: KeeperMessage): void {
    switch (message.type) {
      case 'database':
        this.databaseRuns = true;
        this.options.onEvent(message.whatRuns);
        return;
      case 'failed':
        this.fault ??= message.reason;
        return;
      case 'started':
        Object.assign(this.of(message.number), { pid: message.pid, url: message.url });
        this.ids.set(message.number, []);
        return;
      case 'registered':
        this.of(message.number).instanceId = message.instanceId;
        this.ids.get(message.number)?.push(message.instanceId);
        return;
      case 'declaredDead':
        for (const id of message.instanceIds) this.sayDead(id);
        return;
      case 'ended':
        this.ended(message.number, message.lastLines);
    }
  }

  private ended(number: number, lastLines: readonly string[]): void {
    const instance = this.of(number);
    instance.instanceId = null;
    const kill = this.kills.findLast((one) => one.number === number && one.pid === instance.pid);
    if (kill === undefined) {
      this.fault ??= `instance ${number} ended by itself:\n${lastLines.join('\n')}`;
      return;
    }
    kill.to = this.options.clock.now();
    for (const id of this.ids.get(number) ?? []) this.killedIds.set(id, kill);
  }

  /** More than one may have noticed. */
  private sayDead(id: string): void {
    if (this.saidDead.has(id)) return;
    this.saidDead.add(id);
    const kill = this.killedIds.get(id);
    const who = kill === undefined ? 'an instance that lives' : `instance ${kill.number}`;
    this.options.onEvent(`the others declare ${who} dead and take over its runs`);
  }

  private of(number: number): DemoInstance {
    const instance = this.instances[number - 1];
    if (instance === undefined) throw new Error(`there is no instance ${number}`);
    return instance;
  }
}
