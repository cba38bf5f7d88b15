import type { SQL } from 'drizzle-orm';
import type { FirelockEvent } from '../../src/core/events.ts';
import {
  type Definition,
  type Schedule,
  type Target,
  DEFAULT_COMPLETION_TIMEOUT_SECONDS,
  DEFAULT_RETRY,
  DEFAULT_TIMEOUT_SECONDS,
} from '../../src/core/schedules/schedule.ts';
import { DEFAULT_TIMING } from '../../src/core/timing/timing.ts';
import { type ScopeShares, NO_SHARES } from '../../src/core/access/scope.ts';
import type { KeyRing } from '../../src/core/secrets/key-ring.ts';
import { type Pipeline, createPipeline } from '../../src/flow/pipeline.ts';
import type { Run } from '../../src/core/runs/run.ts';
import { type OneOffHandoff, type OneOffRun, definitionUid } from '../../src/core/runs/one-off-run.ts';
import { acceptRuns } from '../../src/operations/runs/submit-one-off-runs.ts';
import { fireManually } from '../../src/operations/runs/manual-fire.ts';
import { deleteSchedule } from '../../src/operations/schedules/delete-schedule.ts';
import { createAlertWatch } from '../../src/recovery/alert-watch.ts';
import { createResumer } from '../../src/operations/schedules/pause-end.ts';
import { type Pauser, createPauser } from '../../src/operations/schedules/pauser.ts';
import { changeSchedules } from '../../src/operations/schedules/schedule-changes.ts';
import { type DatabaseClock, createDatabaseClock, systemClock } from '../../src/runtime/clock.ts';
import { type ConfirmedCommits, createConfirmedCommits } from '../../src/runtime/confirmed-commits.ts';
import { createEventBus, type EventBus } from '../../src/runtime/event-bus.ts';
import type { Loop } from '../../src/runtime/loop/loop.ts';
import { type Lease, createLease } from '../../src/runtime/instance-lease.ts';
import { type InstallationWatch, createInstallationWatch } from '../../src/runtime/installation-watch.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { registerUnlessObserving } from '../../src/store/instances/instances.ts';
import { rowsOf } from '../../src/postgres/sql/rows.ts';
import { createHttpTarget } from '../../src/targets/http.ts';
import { type TargetRegistry, createTargetRegistry } from '../../src/targets/target.ts';
import { createMigratedDatabase } from './postgres/migrated-database.ts';
import { startPostgresProxy } from './postgres/postgres-proxy.ts';
import { SECRETS } from './secrets.ts';
import { targetAt } from './targets.ts';
import type { Wake } from '../../src/runtime/loop/wake.ts';

/** A database of its own, with the schema, and what a test does to it. */
export interface Store {
  url: string;
  database: Database;
  /** Further pools of it; their sessions outlive the test, unless each round trip is to take longer. */
  openDatabase: typeof openDatabase;
  rows: <Row extends object>(statement: SQL) => Promise<Row[]>;
  drop(): Promise<void>;
}

/** `delayMs`: how much longer each round trip to it takes. */
export async function createStore({ delayMs = 0 } = {}): Promise<Store> {
  const migrated = await createMigratedDatabase();
  const way = delayMs > 0 ? await startPostgresProxy(migrated.url, { delayMs }) : null;
  const url = way?.url ?? migrated.url;
  const open = way === null ? migrated.openDatabase : openDatabase;
  const database = open(url, 5);
  return {
    url,
    database,
    openDatabase: open,
    rows: <Row extends object>(statement: SQL) => database.run((db) => rowsOf<Row>(db)(statement)),
    drop: async () => {
      await database.close();
      await way?.close();
      await migrated.drop();
    },
  };
}

/** One instance's stages 1 to 8 on a store, with its events; without heartbeat and API. */
export interface TestInstance {
  id: string;
  lease: Lease;
  /** What its heartbeats would have told it. */
  installation: InstallationWatch;
  pipeline: Pipeline & { pauser: Pauser; resumer: Loop; alertWatch: Loop };
  targets: TargetRegistry;
  events: FirelockEvent[];
  /** What the API gives operations. */
  deps: OperationDeps;
  /** What its heartbeats would look for. */
  commits: ConfirmedCommits;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Writes schedules as the API does. */
  put(id: string, definition: Partial<Definition> & { url: string }): Promise<Schedule>;
  putMany(ids: readonly string[], definition: Partial<Definition> & { url: string }): Promise<void>;
  /** Fires one now, as the API does. */
  fire(id: string): Promise<Run>;
  /** Records one-off runs, all or none, as the API does. */
  accept(...asked: AskedRun[]): Promise<{ id: string; created: boolean }[]>;
  remove(id: string): Promise<boolean>;
}

interface OperationDeps {
  database: Database;
  targets: TargetRegistry;
  events: EventBus;
  retentionDays: number;
  scopeShares: ScopeShares;
  secrets: KeyRing;
  scope: null;
  wake: Wake;
}

export interface InstanceOptions {
  concurrency?: number;
  concurrencyPerLane?: number;
  scopeShares?: ScopeShares;
  tickIntervalMs?: number;
  lockTtlSeconds?: number;
  /** Of its lease, which somebody must renew; longer than any test unless given. */
  ttlSeconds?: number;
  /** Told that there may be work for those who pull it. */
  wakeWorkers?: () => void;
  /** What it takes for the database's time, where a test lets it pass. */
  databaseClock?: DatabaseClock;
  /** What it encrypts and decrypts with, where that matters. */
  secrets?: KeyRing;
  /** Where files of connections are. */
  secretsDir?: string;
}

const PUBLIC_URL = 'https://cron.example.com/';

export async function createInstance(store: Store, options: InstanceOptions = {}): Promise<TestInstance> {
  const { database } = store;
  const bus = createEventBus();
  const events: FirelockEvent[] = [];
  bus.subscribe((event) => void events.push(event));
  const { concurrency = 64, concurrencyPerLane = 16, tickIntervalMs = 100, lockTtlSeconds = 120 } = options;
  const { secrets = SECRETS, scopeShares = NO_SHARES } = options;
  const targets = createTargetRegistry([
    createHttpTarget({ clock: systemClock, version: 'test', connectionsPerOrigin: concurrencyPerLane }),
  ]);
  const lease = createLease(systemClock, options.ttlSeconds ?? 3600);
  const { instanceId: id } = lease;
  lease.renew(lease.moment());
  const databaseClock = options.databaseClock ?? createDatabaseClock(systemClock);
  const installation = createInstallationWatch({ events: bus, clock: systemClock, databaseClock }, false);
  const commits = createConfirmedCommits(systemClock);
  const stages = createPipeline({
    database,
    secrets,
    secretsDir: options.secretsDir ?? null,
    lease,
    maxRecoveries: 3,
    retentionDays: 30,
    publicUrl: PUBLIC_URL,
    targets,
    events: bus,
    commits,
    clock: systemClock,
    databaseClock,
    installation,
    tickIntervalMs,
    lockTtlSeconds,
    concurrency,
    concurrencyPerLane,
    scopeShares,
    wakeWorkers: options.wakeWorkers ?? (() => undefined),
    wakeAlerts: () => pipeline.alertWatch.wake(),
    pauseSchedules: (effects) => pipeline.pauser.add(effects),
  });
  const deps: OperationDeps = {
    database,
    targets,
    events: bus,
    retentionDays: 30,
    scopeShares,
    secrets,
    scope: null,
    wake: stages.wake,
  };
  const loopDeps = { ...deps, clock: systemClock, definitions: stages.definitions };
  const pipeline = {
    ...stages,
    pauser: createPauser(loopDeps),
    alertWatch: createAlertWatch({ ...loopDeps, lease, publicUrl: PUBLIC_URL }),
    resumer: createResumer({ ...loopDeps, tickIntervalMs, wakeTick: () => stages.tick.wake() }),
  };
  const change = (ids: readonly string[], given: Partial<Definition> & { url: string }) => {
    const decide = () => definitionOf(given);
    return changeSchedules(
      deps,
      ids.map((one) => ({
        id: one,
        by: null,
        scope: null,
        calendars: given.exclude?.calendars ?? [],
        decide,
      })),
    );
  };
  await database.run((db) =>
    registerUnlessObserving(db, { id, host: 'test', version: 'test', zoneData: 'test', ttlSeconds: 3600 }),
  );
  return {
    id,
    lease,
    installation,
    pipeline,
    targets,
    events,
    deps,
    commits,
    start: async () => {
      const { settler, effects, alertEffects, begunEffects, backlogs, pauser, alertWatch } = pipeline;
      const { admission, dispatcher, messageDispatcher, tick } = pipeline;
      const claiming = [admission, dispatcher, messageDispatcher, tick];
      const following = [effects, alertEffects, begunEffects, backlogs, pauser, alertWatch];
      for (const service of [settler, ...following, ...claiming]) await service.start();
    },
    stop: async () => {
      await pipeline.resumer.stop();
      await pipeline.alertWatch.stop();
      await pipeline.tick.stop();
      await pipeline.admission.stop();
      await Promise.all([pipeline.dispatcher.stop(), pipeline.messageDispatcher.stop()]);
      pipeline.dispatchers.abort();
      await pipeline.dispatchers.drained();
      await pipeline.settler.stop();
      await pipeline.effects.stop();
      await pipeline.alertEffects.stop();
      await pipeline.begunEffects.stop();
      await pipeline.backlogs.stop();
      await pipeline.pauser.stop();
      await pipeline.canceller.stop();
      await targets.close();
    },
    putMany: (ids, given) => change(ids, given).then(() => undefined),
    put: async (scheduleId, given) => {
      const [changed] = await change([scheduleId], given);
      if (!changed) throw new Error('nothing was written');
      return changed.schedule;
    },
    fire: async (scheduleId) => {
      const { run } = await fireManually(deps, { scheduleId, payload: null, key: null });
      return run;
    },
    accept: async (...asked) => (await acceptRuns(deps, asked.map(oneOffOf))).runs,
    remove: (scheduleId) => deleteSchedule(deps, { id: scheduleId, by: null, scope: null }, () => undefined),
  };
}

/** What a test says of a one-off run: where it goes, and what matters to it. */
export type AskedRun = Partial<Omit<OneOffRun, 'handoff'>> &
  Partial<Omit<OneOffHandoff, 'target'>> & { target?: Target } & ({ url: string } | { queue: string });

export function oneOffOf({
  ref,
  payload,
  key,
  runAt,
  dependsOn,
  onDependencyFailure,
  priority,
  limit,
  expiresAfterSeconds,
  ...given
}: AskedRun): OneOffRun {
  const { retry, timeoutSeconds, delivery, completion, completionTimeoutSeconds } = definitionOf({
    url: '',
    ...given,
  });
  const target =
    'queue' in given
      ? ({ type: 'pull', queue: given.queue } as const)
      : ((given.target as Target<string> | undefined) ?? targetAt(given.url));
  const handoff = { target, retry, timeoutSeconds, delivery, completion, completionTimeoutSeconds };
  return {
    ref: ref ?? null,
    handoff,
    definitionUid: definitionUid(handoff, SECRETS),
    payload: payload ?? null,
    key: key ?? null,
    runAt: runAt ?? null,
    dependsOn: dependsOn ?? [],
    onDependencyFailure: onDependencyFailure ?? 'fail',
    priority: priority ?? 'normal',
    limit: limit ?? null,
    expiresAfterSeconds: expiresAfterSeconds ?? null,
    labels: {},
  };
}

/** A definition with the API's defaults; once a year unless told otherwise, so that only what a test makes due fires. */
export function definitionOf({ url, ...given }: Partial<Definition> & { url: string }): Definition {
  return {
    ...DEFAULT_TIMING,
    description: null,
    cron: '0 0 1 1 *',
    everySeconds: null,
    at: null,
    after: null,
    overlap: 'allow',
    enabled: true,
    priority: 'normal',
    labels: {},
    payload: null,
    retry: DEFAULT_RETRY,
    timeoutSeconds: DEFAULT_TIMEOUT_SECONDS,
    delivery: 'atLeastOnce',
    completion: 'response',
    completionTimeoutSeconds: DEFAULT_COMPLETION_TIMEOUT_SECONDS,
    pauseReason: null,
    limit: null,
    expiresAfterSeconds: null,
    pauseUntil: null,
    pauseAfterFailures: null,
    successWithinSeconds: null,
    expect: null,
    observe: null,
    target: targetAt(url),
    ...given,
  };
}
