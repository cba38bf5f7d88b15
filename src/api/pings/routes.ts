import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ToldReport } from '../../core/runs/observed/apply-report.ts';
import { keptText } from '../../core/runs/attempts/kept-text.ts';
import { onBehalfOf } from '../../runtime/loop/asker.ts';
import { takeReport } from '../../operations/observed/take-report.ts';
import { hashOfPingKey, isPingKey } from '../../store/runs/observed/ping-keys.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { tooMany } from '../access/access.ts';
import { createRateLimit } from '../access/rate-limit.ts';
import { Problem, unavailable } from '../http/problem.ts';
import { networkOf, remoteAddressOf } from '../http/remote-address.ts';
import { readCheckIn, readQuery, readWord } from './ping-words.ts';

const BODY_LIMIT = 100 * 1024;
const OF_KEY = { burst: 5, perSecond: 5, maxKeys: 10_000 };
const UNKNOWN_KEYS = { burst: 20, perSecond: 20 / 60, maxKeys: 10_000 };

type PingDeps = Omit<ApiDeps, 'database' | 'slowDatabase'>;

interface Ping {
  key: string;
  report: Omit<ToldReport, 'text' | 'whole'>;
  /** Of the schedule that the key must belong to; absent: of any. */
  scheduleId?: string;
}

/** Jobs of observed schedules report here, without a token: the key says which schedule it is, and that the caller may. */
export function addPingRoutes(server: Api, deps: PingDeps): void {
  const take = pingTaker(deps);
  const options = { method: ['GET', 'POST'], bodyLimit: BODY_LIMIT, schema: { hide: true } };
  void server.register((api: Api, _options, done) => {
    api.removeAllContentTypeParsers();
    api.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, parsed) => parsed(null, bytes));
    api.addHook('onRequest', refuseWhileResting(deps));
    for (const url of ['/ping/:key', '/ping/:key/:word'])
      api.route<{ Params: { key: string; word?: string } }>({
        ...options,
        url,
        handler: (request, reply) => {
          const { key, word = '' } = request.params;
          return take(request, reply, () => ({
            key,
            report: { ...readWord(word), ...readQuery(asked(request)) },
          }));
        },
      });
    for (const end of ['', '/'])
      api.route<{ Params: { id: string; key: string } }>({
        ...options,
        url: `/api/:project(^\\d+$)/cron/:id/:key${end}`,
        handler: (request, reply) => {
          const { id: scheduleId, key } = request.params;
          return take(request, reply, () => ({ key, scheduleId, report: readCheckIn(asked(request)) }));
        },
      });
    done();
  });
}

function asked({ query }: FastifyRequest): Record<string, unknown> {
  return query as Record<string, unknown>;
}

/** As calls of the API: a GET changes something here. */
function refuseWhileResting({ readiness, installation }: PingDeps) {
  return async ({ is404 }: FastifyRequest): Promise<void> => {
    if (is404) return Promise.resolve();
    if (readiness().checks['migrations'] !== 'ok') throw unavailable('the database is not ready yet');
    if (installation().mode === 'observes')
      throw unavailable('this instance only observes: call the installation that works');
    return Promise.resolve();
  };
}

function pingTaker({ promptDatabase: database, ...deps }: PingDeps) {
  const { clock, events } = deps;
  const ofKey = createRateLimit({ clock, ...OF_KEY });
  const unknownKeys = createRateLimit({ clock, ...UNKNOWN_KEYS });
  return async (request: FastifyRequest, reply: FastifyReply, read: () => Ping): Promise<FastifyReply> => {
    const network = networkOf(remoteAddressOf(request.raw.socket));
    const { key, report, scheduleId } = read();
    const keyHash = hashOfPingKey(key);
    const waitSeconds = ofKey.take(keyHash);
    if (waitSeconds > 0) {
      events.emit({ type: 'pinged', outcome: 'limited' });
      throw tooMany('too many reports with this key', waitSeconds);
    }
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const told = { ...report, text: keptText(body), whole: body.toString() };
    const outcome = isPingKey(key)
      ? await onBehalfOf({ key: `ping ${network}`, isModest: false }, () =>
          takeReport({ ...deps, database }, keyHash, told, scheduleId),
        )
      : 'unknown';
    events.emit({ type: 'pinged', outcome });
    if (outcome === 'unknown') throw unknownKey(unknownKeys.take(network));
    return reply.type('text/plain; charset=utf-8').send('OK');
  };
}

function unknownKey(waitSeconds: number): Problem {
  return waitSeconds > 0
    ? tooMany('too many reports with unknown keys', waitSeconds)
    : new Problem(404, 'no schedule has this key');
}
