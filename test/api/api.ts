import { installationUnseen } from '../support/working.ts';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { promisify } from 'node:util';
import { pino } from 'pino';
import postgres from 'postgres';
import { afterAll, beforeAll, expect } from 'vitest';
import { createEffects } from '../../src/flow/effects.ts';
import { type LogFollowers, createLogFollowers } from '../../src/queues/log-followers.ts';
import { type PullQueues, createPullQueues } from '../../src/queues/pull-queues.ts';
import type { Readiness } from '../../src/runtime/readiness.ts';
import { type Access, type AccessDeps, createAccess } from '../../src/api/access/access.ts';
import { type BrowserRulesDeps, createBrowserRules } from '../../src/api/access/browser-rules.ts';
import { type Dashboard, type AnswerLimits, ANSWER_LIMITS } from '../../src/api/deps.ts';
import { type ConnectionLimits, standardLimits } from '../../src/api/http/plugins/strangers.ts';
import { createServer } from '../../src/api/server.ts';
import { type ScopeShares, NO_SHARES } from '../../src/core/access/scope.ts';
import { type OpenRunCaps, createOpenRunCaps } from '../../src/operations/scope-caps.ts';
import { takeOver } from '../../src/operations/installation-changes.ts';
import type { KeyRing } from '../../src/core/secrets/key-ring.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { auditorFor } from '../../src/store/audit/audit-rows.ts';
import { createLease } from '../../src/runtime/instance-lease.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { openPools } from '../../src/postgres/database-pools.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import type { Wake } from '../../src/runtime/loop/wake.ts';
import { createHttpTarget } from '../../src/targets/http.ts';
import { createTargetRegistry } from '../../src/targets/target.ts';
import { call as callAt } from '../support/calls.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { SECRETS } from '../support/secrets.ts';
import { until } from '../support/until.ts';
import { notingAll } from '../support/postgres/noting.ts';
import { targetAt } from '../support/targets.ts';

export interface Answer {
  status: number;
  headers: Headers;
  /** Byte for byte. */
  text: string;
  /** Parsed, where it is JSON. */
  body: Json;
}

/** What an answer holds; tests know what they asked for. */
export interface Json {
  [key: string]: Json;
  [index: number]: Json;
}

export interface Api {
  readonly url: string;
  /** For another instance. */
  readonly databaseUrl: string;
  /** Logged at warn or above while requests were served. */
  readonly warnings: object[];
  readonly readiness: Readiness;
  readonly sql: postgres.Sql;
  /** How often the API has woken the loops of the daemon around it. */
  readonly wakes: Readonly<Record<keyof Wake, number>>;
  /** How often it has woken the loop that claims. */
  readonly woken: () => number;
  /** Which loops it has woken, and how often, since this was asked last. */
  readonly justWoken: () => Record<keyof Wake, number>;
  /** Ids of runs whose targets are to be told that they were cancelled, until followUp(). */
  readonly cancelled: () => Promise<string[]>;
  /** Does what follows from the ends so far, as the daemon around it does soon after each. */
  readonly applyEffects: () => Promise<void>;
  readonly pullQueues: PullQueues;
  readonly logFollowers: LogFollowers;
  readonly access: Access;
  /** Which pools of connections the API has used; tests clear it. */
  readonly poolsUsed: Set<string>;
  /** The statements that calls have sent, by the function that each names; tests clear it. */
  readonly statements: string[];
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** How many connections it has. */
  connections(): Promise<number>;
  /** Bytes as they are, for what no HTTP client would send. */
  raw(bytes: string): Promise<string>;
  stop(): Promise<void>;
}

/** The API asks for no token. */
const ANONYMOUS = {
  ...{ apiTokens: [], trustedProxies: [], tokenRequestsPerSecond: 1000 },
  ...{ host: '127.0.0.1', allowedHosts: { names: [], ranges: [] } },
};

type Options = Partial<AccessDeps & BrowserRulesDeps> & {
  basePath?: string;
  dashboard?: Dashboard;
  secrets?: KeyRing;
  takesSecretFiles?: boolean;
  sendsMail?: boolean;
  mailToDomains?: string[];
  scopeShares?: ScopeShares;
  openRunCaps?: OpenRunCaps;
  runLogKib?: number;
  mostLogFollowers?: number;
  limits?: Partial<ConnectionLimits>;
  answerLimits?: AnswerLimits;
};

/** The API alone, listening, on a migrated database of its own (or on the one named). Nothing fires here. */
export async function startApi(databaseUrl?: string, options: Options = {}): Promise<Api> {
  const { basePath = '', dashboard = null, secrets = SECRETS, limits = {}, ...more } = options;
  const { takesSecretFiles = false, sendsMail = false, mailToDomains = [], scopeShares = NO_SHARES, ...rest } = more;
  const database = databaseUrl === undefined ? await createMigratedDatabase() : null;
  const { openRunCaps, answerLimits = ANSWER_LIMITS, runLogKib = 1024, mostLogFollowers, ...asking } = rest;
  const url = databaseUrl ?? database?.url ?? '';
  const pools = openPools({
    databaseUrl: url,
    connections: 9,
    openDatabase: database?.openDatabase ?? openDatabase,
  });
  const store = pools.main;
  const poolsUsed = new Set<string>();
  const statements: string[] = [];
  const noted = (pool: Database, name: string, into = statements): Database => {
    const noting = notingAll(pool, into);
    return {
      ...noting,
      run: (work, limitMs) => (poolsUsed.add(name), noting.run(work, limitMs)),
      transaction: (work, limitMs) => (poolsUsed.add(name), noting.transaction(work, limitMs)),
    };
  };
  const targets = createTargetRegistry([
    createHttpTarget({ clock: systemClock, version: '0', connectionsPerOrigin: 1 }),
  ]);
  const warnings: object[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(JSON.parse(line) as object) });
  const readiness: Readiness = { status: 'ready', checks: { migrations: 'ok' }, warnings: [] };
  const wakes = { effects: 0, dispatch: 0, workers: 0, admission: 0, alerts: 0 };
  const events = createEventBus();
  const lease = createLease(systemClock, 3600);
  const pullQueues = createPullQueues({
    // What it asks now and then is no call's.
    database: noted(pools.api, 'api', []),
    clock: systemClock,
    events,
    lease,
  });
  const following = { database: noted(pools.api, 'api', []), clock: systemClock, events };
  const logFollowers = createLogFollowers(following, mostLogFollowers);
  await Promise.all([pullQueues.start(), logFollowers.start()]);
  const wake: Wake = {
    effects: () => (wakes.effects += 1),
    dispatch: () => (wakes.dispatch += 1),
    workers: () => (wakes.workers += 1),
    admission: () => (wakes.admission += 1),
    alerts: () => (wakes.alerts += 1),
  };
  const asked = { clock: systemClock, events, ...ANONYMOUS, ...asking };
  const access = createAccess(asked);
  const server = await createServer({
    access,
    browserRules: createBrowserRules(asked),
    clock: asked.clock,
    connectionLimits: { ...standardLimits(() => false), ...limits },
    answerLimits,
    hasSignsElsewhere: false,
    database: noted(pools.calls, 'calls'),
    promptDatabase: noted(pools.api, 'api'),
    slowDatabase: noted(pools.background, 'background'),
    targets,
    events,
    ...{ pullQueues, logFollowers, runLogKib },
    wake,
    scopeShares,
    // Nothing counts the open runs again, unless a test does: what calls have asked for is added up.
    openRunCaps: openRunCaps ?? createOpenRunCaps({ database: store, clock: systemClock, events, scopeShares }).caps,
    retentionDays: 30,
    basePath,
    dashboard,
    learnInstallation: () => undefined,
    secrets,
    takesSecretFiles,
    sendsMail,
    mailToDomains,
    installation: () => installationUnseen().current(),
    takeOver: async (since, caller) => ({
      ...(await takeOver(
        {
          ...{ database: store, lockTtlSeconds: 60, signal: new AbortController().signal },
          ...{ isSet: true, auditor: auditorFor(caller) },
        },
        { since, by: caller.name },
      )),
      observesOn: true,
    }),
    readiness: () => readiness,
    metrics: { contentType: 'text/plain; version=0.0.4', text: () => Promise.resolve('up 1\n') },
    version: '0.0.0-test',
    logger,
  });
  const base = await server.listen({ host: '127.0.0.1', port: 0 });
  // Through a pooler each transaction may have another session, which does not know what was prepared.
  const sql = postgres(url, { max: 1, prepare: false, onnotice: () => undefined });
  let known = { ...wakes };
  return {
    url: base,
    databaseUrl: url,
    warnings,
    readiness,
    sql,
    wakes,
    woken: () => wakes.dispatch,
    justWoken: () => {
      const { effects, dispatch, workers, admission, alerts } = known;
      known = { ...wakes };
      return {
        effects: known.effects - effects,
        dispatch: known.dispatch - dispatch,
        workers: known.workers - workers,
        admission: known.admission - admission,
        alerts: known.alerts - alerts,
      };
    },
    cancelled: async () => {
      const rows = await sql<{ id: string }[]>`SELECT run_id AS id FROM effects WHERE kind = 'cancel' ORDER BY id`;
      return rows.map(({ id }) => id);
    },
    applyEffects: async () => {
      const { effects, alertEffects } = createEffects({
        publicUrl: null,
        database: store,
        clock: systemClock,
        events,
        wake: { ...wake, effects: () => [effects, alertEffects].forEach((loop) => loop.wake()) },
        offer: () => undefined,
        cancelTargets: () => undefined,
        pauseSchedules: () => undefined,
      });
      await Promise.all([effects.start(), alertEffects.start()]);
      await until(async () =>
        (await sql`SELECT FROM effects WHERE kind NOT IN ('gone', 'failing')`).length === 0 ? true : null,
      );
      await Promise.all([effects.stop(), alertEffects.stop()]);
    },
    ...{ pullQueues, logFollowers },
    poolsUsed,
    statements,
    access,
    call: (method, path, body, headers) => call(base, method, path, body, headers),
    connections: promisify(server.server.getConnections.bind(server.server)),
    raw: (bytes) => sendBytes(base, bytes),
    stop: async () => {
      await Promise.all([pullQueues.stop(), logFollowers.stop()]);
      await server.close();
      await targets.close();
      await Promise.all(Object.values(pools).map((pool) => pool.close()));
      await sql.end({ timeout: 1 });
      await database?.drop();
    },
  };
}

/** The API alone for the tests of a file: it starts before them and stops after them. `beside`: on the database of that one. */
export function sharedApi(options?: Options, beside?: Api): Api {
  let api: Api | undefined;
  beforeAll(async () => {
    api = await startApi(beside?.databaseUrl, options);
  });
  afterAll(() => api?.stop());
  return new Proxy({} as Api, { get: (_, name) => Reflect.get(api ?? {}, name) as unknown });
}

/** One that must have logged nothing at warn or above in the end. */
export function quietApi(options?: Options): Api {
  const api = sharedApi(options);
  afterAll(() => expect(api.warnings).toEqual([]));
  return api;
}

/** A body that is a string goes as it is, with the content type of JSON; anything else as its JSON. */
async function call(
  base: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const url = path.startsWith('/') && !path.startsWith('//') ? base + path : path;
  const answer = await callAt(url, method, { body, headers });
  return { ...answer, body: (typeof answer.body === 'string' ? {} : answer.body) as Json };
}

/** Answers all that comes until the server closes the connection. */
export async function sendBytes(base: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(base);
  const socket = new Socket().connect(Number(port), hostname);
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (answer += chunk));
  socket.on('error', () => undefined);
  socket.write(bytes, 'latin1');
  await once(socket, 'close');
  return answer;
}

export const TARGET = { type: 'http', url: 'https://example.com/hook' };
/** As it is answered. */
export const ANSWERED_TARGET = targetAt(TARGET.url);
/** Far from every test: 29 February at noon. */
export const SCHEDULE = { cron: '0 12 29 2 *', target: TARGET };

/** Paths of the faults that a problem names. */
export function faultPaths(answer: Answer): string[] {
  const errors = answer.body['errors'] as unknown as { path: string }[] | undefined;
  return (errors ?? []).map(({ path }) => path).sort();
}

export const itemsOf = ({ body }: Answer) => body['items'] as unknown as Json[];
export const idsOf = (answer: Answer) => itemsOf(answer).map(({ id }) => id as unknown as string);
export const errorsOf = ({ body }: Answer) => body['errors'] as unknown as { path: string; message: string }[];
export const detailOf = ({ status, body }: Answer) => [status, body['detail']];
