import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, ROLES } from '../../core/access/roles.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { addRoute, json, nothing, TAGS } from '../http/routes.ts';
import type { Database } from '../../postgres/database.ts';
import {
  beginSession,
  endSession,
  findSession,
  renewSession,
  SESSION_SECONDS,
} from '../../store/sessions/session-rows.ts';
import { Problem } from '../http/problem.ts';
import { networkOf, remoteAddressOf } from '../http/remote-address.ts';
import { noteSession, tooMany } from './access.ts';
import { createRateLimit } from './call-limits.ts';

export const caller = z
  .object({
    name: z.string().nullable().describe('Null: this firelock does not ask callers who they are.'),
    role: z.enum(ROLES).describe('What the caller may do.'),
    scope: z.array(z.string()).nullable().meta({
      description: 'The caller sees and changes only what has a name that begins with one of these; null: everything.',
    }),
  })
  .meta({ id: 'Caller' });

export function addCallerRoutes(api: Api, deps: ApiDeps): void {
  addMeRoute(api);
  addBeginRoute(api, deps);
  addEndRoute(api, deps);
}

function addMeRoute(api: Api): void {
  addRoute(api, {
    route: 'GET /me',
    operationId: 'getMe',
    config: { role: 'any', scope: 'nameless' },
    summary: 'Who the caller is to firelock, and what they may do',
    tags: [TAGS.instances],
    answers: { 200: json('The caller', caller) },
    handler: (request) => answerCaller(request.caller),
  });
}

function answerCaller({ name, role, scope }: Caller): z.output<typeof caller> {
  return { name, role, scope: scope === null ? null : [...scope] };
}

const COOKIE = 'firelock_session';

/** Looks that a network may ask for: each costs a statement, and a stranger may send any cookie. */
const LOOKS = { burst: 200, perSecond: 50, maxKeys: 10_000 };

type SessionDeps = Pick<ApiDeps, 'database' | 'clock' | 'basePath'>;

/** Before callers are identified. Every instance asks the database: so a session that was ended is over at all of them. */
export function resumeSessions(api: Api, { database, clock, basePath }: SessionDeps): void {
  const looks = createRateLimit({ clock, ...LOOKS });
  api.addHook('onRequest', async ({ raw }, reply) => {
    const idHash = raw.headers.authorization === undefined ? sentHash(raw) : null;
    if (idHash === null) return;
    const waitSeconds = looks.take(networkOf(remoteAddressOf(raw.socket)));
    if (waitSeconds > 0) throw tooMany('too many calls with a session', waitSeconds);
    const found = await database.run((db) => findSession(db, idHash));
    if (found === null) return;
    noteSession(raw, Buffer.from(found.tokenHash, 'hex'));
    if (found.isOld && (await renewed(database, idHash)))
      reply.header('set-cookie', cookieText(sentId(raw) ?? '', { ...found, basePath }));
  });
}

/** The database may only be read just now: then it lasts as long as it did. */
function renewed(database: Database, idHash: string): Promise<boolean> {
  return database
    .run((db) => renewSession(db, idHash))
    .then(
      () => true,
      () => false,
    );
}

const config = { role: 'any', scope: 'nameless', audits: [] } as const;

function addBeginRoute(api: Api, { database, access, basePath }: ApiDeps): void {
  addRoute(api, {
    route: 'POST /session',
    operationId: 'beginSession',
    config,
    summary: 'Log a browser in: from now on a cookie counts as the token of this call',
    description:
      'At every instance, until `DELETE /session`, until it was not used for twelve hours, or until the token is gone. Scripts of pages cannot read the cookie, and no other site makes a browser send it.',
    tags: [TAGS.instances],
    answers: { 200: json('The caller', caller) },
    refusals: [409, 413, 415],
    handler: async (request, reply) => {
      const tokenHash = access.tokenHashOf(request.raw)?.toString('hex');
      if (tokenHash === undefined)
        throw new Problem(409, 'this call was made without a token, for which a session could stand');
      const id = randomBytes(32).toString('base64url');
      const isSecure = isBehindHttps(request);
      await database.transaction((tx) => beginSession(tx, { idHash: hashOf(id), tokenHash, isSecure }));
      reply.header('set-cookie', cookieText(id, { isSecure, basePath }));
      return answerCaller(request.caller);
    },
  });
}

function addEndRoute(api: Api, { database, basePath }: ApiDeps): void {
  addRoute(api, {
    route: 'DELETE /session',
    operationId: 'endSession',
    config,
    summary: 'Log a browser out, at every instance',
    tags: [TAGS.instances],
    answers: { 204: nothing('It has no session any more') },
    handler: async ({ raw }, reply: FastifyReply) => {
      const idHash = sentHash(raw);
      if (idHash !== null) await database.run((db) => endSession(db, idHash));
      reply.header('set-cookie', cookieText('', { isSecure: false, basePath }));
      return reply.code(204).send(null);
    },
  });
}

/** The browser says where its page comes from, and a proxy how it was asked. */
function isBehindHttps({ headers }: FastifyRequest): boolean {
  return headers['x-forwarded-proto'] === 'https' || /^https:/i.test(headers.origin ?? '');
}

function cookieText(id: string, { isSecure, basePath }: { isSecure: boolean; basePath: string }): string {
  const lasts = id === '' ? 0 : SESSION_SECONDS;
  const text = `${COOKIE}=${id}; Path=${basePath}/; Max-Age=${lasts}; HttpOnly; SameSite=Strict`;
  return isSecure ? `${text}; Secure` : text;
}

/** 256 random bits. */
const SENT = new RegExp(`(?:^|; ?)${COOKIE}=([\\w-]{43})(?:;|$)`);

function sentId({ headers }: IncomingMessage): string | null {
  return SENT.exec(headers.cookie ?? '')?.[1] ?? null;
}

function sentHash(request: IncomingMessage): string | null {
  const id = sentId(request);
  return id === null ? null : hashOf(id);
}

/** The table does not say what a cookie says. */
function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('hex');
}
