import { afterAll, beforeAll, expect } from 'vitest';
import { type ScopeShares, NO_SHARES } from '../../../src/core/access/scope.ts';
import { type Answer, type Api, startApi } from '../api.ts';
import { API_TOKENS, BILLING, type OPS, type Team, admin, fillTeam, fixFigures, rowsOfTeam } from './worlds.ts';

export type Caller = (typeof OPS)[number];

export interface Asked {
  method: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
}

/** What an installation has besides the teams' own names. */
export interface World {
  api: Api;
  ops: Team;
  shared: Team;
}

/**
 * Two installations with the same things of ops and of all. In the first there is billing as well. What ops asks is answered alike by
 * both: so no answer tells anything of billing, not even that it is there.
 */
interface Twins {
  readonly both: World;
  readonly alone: World;
  readonly billing: Team;
  /** Asks both, and checks that nothing of billing shows; answers what the first one said. */
  ask(caller: Caller, of: (world: World) => Asked): Promise<Answer>;
  /** All rows of billing, as text. */
  rowsOfBilling(): Promise<string[]>;
}

/**
 * `remembers`: whether an answer to a call of this path may have what ops itself has said earlier. They start before the tests of a file,
 * and stop after them.
 */
export function startTwins(remembers: (path: string) => boolean, scopeShares: ScopeShares = NO_SHARES): Twins {
  let twins: Twins | undefined;
  const apis: Api[] = [];
  beforeAll(async () => {
    for (let n = 0; n < 2; n += 1) apis.push(await startApi(undefined, { apiTokens: API_TOKENS, scopeShares }));
    const [first, second] = apis as [Api, Api];
    const billing = await fillTeam(first, 'billing.');
    await actAsBilling(first);
    const [both, alone] = [await fillWorld(first), await fillWorld(second)];
    await shareWithBilling(first);
    const secrets = await secretsOf(first, billing, both);
    twins = {
      ...{ both, alone, billing },
      ask: (caller, of) => askBoth({ both, alone, secrets, remembers }, caller, of),
      rowsOfBilling: () => rowsOfTeam(first, billing),
    };
  });
  afterAll(async () => {
    for (const api of apis) await api.stop();
  });
  return new Proxy({} as Twins, { get: (_, name) => Reflect.get(twins ?? {}, name) as unknown });
}

async function fillWorld(api: Api): Promise<World> {
  const world = { api, ops: await fillTeam(api, 'ops.'), shared: await fillTeam(api, 'shared.') };
  await fixFigures(api);
  return world;
}

/** Leaves entries of the audit that have no name of a thing, but billing's. */
async function actAsBilling(api: Api): Promise<void> {
  const post = (path: string, body: object) => api.call('POST', `/api/v1${path}`, body, BILLING.headers);
  const bulk = { action: 'pause', filter: { label: 'who:nobody' } };
  expect((await post('/schedules/bulk', bulk)).status).toBe(200);
  expect((await post('/maintenance', { on: false })).status).toBe(403);
}

/** What billing does with what all may name. */
async function shareWithBilling(api: Api): Promise<void> {
  const [limit, connection, queue] = ['shared.lim', 'shared.con', 'shared.q'];
  const pull = { type: 'pull', queue };
  const more = { labels: { team: 'any', who: 'billing.' }, cron: '0 12 29 2 *' };
  const http = { type: 'http', url: '/x', connection };
  await admin(api, 'PUT', '/schedules/billing.s-limit', { ...more, limit, target: http });
  await admin(api, 'PUT', '/schedules/billing.s-pull', { ...more, limit, target: pull });
  const after = { cron: undefined, after: { scheduleId: 'shared.active' } };
  await admin(api, 'PUT', '/schedules/billing.s-after', { ...more, ...after, target: pull });
  await admin(api, 'POST', '/schedules/billing.s-limit/fire');
  await admin(api, 'POST', '/schedules/billing.s-pull/fire');
  const shared = (await admin(api, 'GET', '/runs?key=shared.first')).body['items']?.[0]?.['id'];
  await admin(api, 'POST', '/runs', { target: pull, limit, key: 'billing.s-run', dependsOn: [shared] });
}

/** Words and ids that nobody of ops may read. */
async function secretsOf(api: Api, billing: Team, { ops, shared }: World): Promise<Set<string>> {
  const idsIn = (rows: string[]) => rows.join().match(UUID) ?? [];
  const known = new Set([...idsIn(await rowsOfTeam(api, ops)), ...idsIn(await rowsOfTeam(api, shared))]);
  return new Set(idsIn(await rowsOfTeam(api, billing)).filter((id) => !known.has(id)));
}

interface Compared {
  both: World;
  alone: World;
  secrets: ReadonlySet<string>;
  remembers: (path: string) => boolean;
}

async function askBoth(
  { both, alone, secrets, remembers }: Compared,
  caller: Caller,
  of: (world: World) => Asked,
): Promise<Answer> {
  const [asked, first] = await ask(both, caller, of);
  const [, second] = await ask(alone, caller, of);
  const name = `${caller.known.name}: ${asked.method} ${asked.path} ${asked.body === undefined ? '' : JSON.stringify(asked.body)}`;
  expect.soft([name, first.seen]).toEqual([name, second.seen]);
  expect.soft([name, first.statements]).toEqual([name, second.statements]);
  // What the caller has said itself is no news to it.
  const said = JSON.stringify(asked);
  for (const text of [...(said.match(UUID) ?? []), ...(said.match(BILLING_WORDS) ?? [])]) saidBefore.add(text);
  const words = [...new Set(first.bytes.match(BILLING_WORDS) ?? [])];
  const ids = (first.bytes.match(UUID) ?? []).filter((id) => secrets.has(id));
  const isNews = (text: string) =>
    !said.includes(text) && !decoded(said).includes(text) && !(remembers(asked.path) && saidBefore.has(text));
  const leaked = [...words, ...ids].filter(isNews);
  expect.soft([name, leaked]).toEqual([name, []]);
  return first.answer;
}

async function ask({ api, ...world }: World, caller: Caller, of: (world: World) => Asked) {
  const asked = of({ api, ...world });
  api.statements.length = 0;
  const { method, path, body, headers } = asked;
  const answer = await api.call(method, `/api/v1${path}`, body, { ...caller.headers, ...headers });
  const told = TELLING.map((name) => answer.headers.get(name));
  const bytes = [answer.status, ...told, decoded(answer.text)].join('\n');
  return [
    asked,
    {
      answer,
      bytes,
      seen: seenOf(path, bytes),
      statements: api.statements.filter((name) => name !== 'recordRefusals'),
    },
  ] as const;
}

const TELLING = 'firelock-log-offset etag location retry-after link allow content-type www-authenticate'.split(' ');
const BILLING_WORDS = /billing[\w.-]*/gi;
/** What ops has said in its calls so far. */
const saidBefore = new Set<string>();
const UUID = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g;

/** With cursors in clear. */
function decoded(text: string): string {
  return text.replaceAll(
    /(nextCursor":"|cursor=)([\w-]+)/g,
    (_, before: string, cursor: string) => before + Buffer.from(cursor, 'base64url').toString(),
  );
}

/** What both installations must answer alike. */
function seenOf(path: string, bytes: string): string {
  if (path.startsWith('/audit')) return masked(withoutRefused(bytes));
  // Runs that are due at the same moment are claimed in any order.
  if (!path.endsWith('/claim')) return masked(bytes);
  const parts = masked(bytes).split('{"id":');
  return parts
    .map((part) => part.replace(/[,\]}]+$/, ''))
    .toSorted()
    .join();
}

/** What was refused enters the audit some time after, and not all of it: what ops reads of that is in audit-in-scope.test.ts. */
function withoutRefused(bytes: string): string {
  return bytes.replaceAll(/\{"at":"[^{]*"outcome":"refused","detail":\{[^{}]*\}\},?/g, '').replaceAll(',]', ']');
}

/** Without what differs from one installation to the next: random ids, and moments. */
function masked(bytes: string): string {
  return bytes
    .replaceAll(UUID, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<at>')
    .replaceAll(/("(?:oldestPendingSeconds|latenessMs|at|scheduledFor)":)[\d.]+/g, '$1<n>');
}
