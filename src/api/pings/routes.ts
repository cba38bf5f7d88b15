import type { FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import { LRUCache } from 'lru-cache';
import { keptText } from '../../core/runs/attempts/outcome.ts';
import { onBehalfOf } from '../../runtime/loop/turns.ts';
import { takeReport } from '../../operations/observed/take-report.ts';
import { hashOfPingKey, isPingKey } from '../../store/runs/observed.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { tooMany } from '../access/access.ts';
import { createRateLimit } from '../access/call-limits.ts';
import { Problem, unavailable } from '../http/problem.ts';
import { networkOf, remoteAddressOf } from '../http/remote-address.ts';
import {
  type Named,
  type Ping,
  type PingOperation,
  MAX_BODY_BYTES,
  OF_KEY,
  PING_METHODS,
  PING_OPERATIONS,
  PING_SCHEMA,
  UNKNOWN_KEYS,
} from './ping-operations.ts';

type Take = (request: FastifyRequest, reply: FastifyReply, read: () => Ping) => Promise<FastifyReply>;

/** Jobs of observed schedules report here, without a token: the key says which schedule it is, and that the caller may. */
export function addPingRoutes(server: Api, deps: ApiDeps): void {
  const take = pingTaker(deps);
  void server.register((api: Api, _options, done) => {
    api.removeAllContentTypeParsers();
    api.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, parsed) => parsed(null, bytes));
    api.addHook('onRequest', refuseWhileResting(deps));
    for (const operation of PING_OPERATIONS) addOperation(api, take, operation);
    done();
  });
}

function addOperation(
  api: Api,
  take: Take,
  { url, alsoAt, name, summary, params, querystring, read }: PingOperation,
): void {
  for (const { method, also, said, takes } of PING_METHODS) {
    const route = {
      method,
      bodyLimit: MAX_BODY_BYTES,
      handler: (request: FastifyRequest, reply: FastifyReply) =>
        take(request, reply, () => read(request.params as Named, request.query)),
    };
    const own = { operationId: name + also, summary: summary + said, params, querystring };
    const schema: FastifySchema = { ...PING_SCHEMA, ...takes, ...own };
    api.route({ ...route, url, schema });
    if (alsoAt !== undefined) api.route({ ...route, url: alsoAt, schema: { hide: true } });
  }
}

/** As calls of the API: a GET changes something here. */
function refuseWhileResting({ readiness, installation }: ApiDeps) {
  return async ({ is404 }: FastifyRequest): Promise<void> => {
    if (is404) return Promise.resolve();
    if (readiness().checks['migrations'] !== 'ok') throw unavailable('the database is not ready yet');
    if (installation().mode === 'observes')
      throw unavailable('this instance only observes: call the installation that works');
    return Promise.resolve();
  };
}

function pingTaker({ database, ...deps }: ApiDeps): Take {
  const { clock, events } = deps;
  const ofKey = createRateLimit({ clock, ...OF_KEY });
  const unknownKeys = createRateLimit({ clock, ...UNKNOWN_KEYS });
  /** Hashes of keys that were right when they were used last. */
  const known = new LRUCache<string, true>({ max: MAX_KNOWN });
  const refuse = (detail: string, waitSeconds: number): void => {
    if (waitSeconds === 0) return;
    events.emit({ type: 'pinged', outcome: 'limited' });
    throw tooMany(detail, waitSeconds);
  };
  return async (request, reply, read) => {
    const network = networkOf(remoteAddressOf(request.raw.socket));
    const { key, report, scheduleId } = read();
    const keyHash = hashOfPingKey(key);
    refuse('too many reports with this key', ofKey.take(keyHash));
    // What others do behind the same address does not keep a job from reporting.
    if (!known.has(keyHash)) refuse(TOO_MANY_UNKNOWN, unknownKeys.look(network));
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const told = { ...report, text: keptText(body), whole: body.toString() };
    const outcome = isPingKey(key)
      ? await onBehalfOf({ key: `ping ${network}`, isModest: false }, () =>
          takeReport({ ...deps, database }, keyHash, told, scheduleId),
        )
      : 'unknown';
    events.emit({ type: 'pinged', outcome });
    if (outcome !== 'unknown') {
      known.set(keyHash, true);
      return reply.type('text/plain; charset=utf-8').send('OK');
    }
    known.delete(keyHash);
    unknownKeys.take(network);
    throw new Problem(404, 'no schedule has this key');
  };
}

const TOO_MANY_UNKNOWN = 'too many reports with unknown keys';
/** A few megabytes. */
const MAX_KNOWN = 20_000;
