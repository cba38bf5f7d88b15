import type { FastifyRequest } from 'fastify';
import type { Api } from '../deps.ts';
import { type Caller, mayCall, type RoleNeeded } from '../../core/access/roles.ts';
import type { AuditAction } from '../../core/audit.ts';
import type { RefusedCall } from '../../store/audit/audit-rows.ts';
import type { Database } from '../../postgres/database.ts';
import { noSuch, Problem } from '../http/problem.ts';
import type { Strangers } from '../http/plugins/strangers.ts';
import type { Access } from './access.ts';
import type { CallPace } from './call-limits.ts';
import { letCallsWait } from './waiting-calls.ts';
import { owns, scopeText, sees } from '../../core/access/scope.ts';
import { type RunUse, isRunInScope } from '../../store/scopes/in-scope.ts';
import { READING } from '../http/routes.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller of a request under `/api/v1`. */
    caller: Caller;
  }
  interface FastifyContextConfig {
    /** The role that a route under `/api/v1` needs. */
    role?: RoleNeeded;
    /** How it keeps to the caller's scope. */
    scope?: ScopeRule;
    /** How long a call of it may take, and so what it must not hold up; `usual` if it does not say. */
    pace?: CallPace;
    /**
     * What a route that may change something writes into the audit; the entry of a refused call names the first. None:
     * no audit.
     */
    audits?: readonly AuditAction[];
  }
}

interface GuardDeps {
  access: Access;
  strangers: Strangers;
  database: Database;
  onRefused: (call: RefusedCall) => void;
}

/**
 * Asks the callers of all routes that are added after this one who they are, also where there is no route: without a
 * token, a stranger does not learn which paths exist.
 */
export function guardRoutes(api: Api, { access, strangers, database, onRefused }: GuardDeps): void {
  api.decorateRequest('caller', null as unknown as Caller);
  api.addHook('onRoute', ({ method, url, config }) => {
    const methods = [method].flat();
    const route = `${methods.join(', ')} ${url}`;
    if (config?.role === undefined) throw lacking(route, ROLE);
    if (config.scope === undefined) throw lacking(route, SCOPE);
    if (!methods.every((one) => READING.includes(one)) && config.audits === undefined) throw lacking(route, AUDITS);
  });
  const identify = ({ raw }: FastifyRequest): Caller => {
    try {
      const caller = access.identify(raw);
      strangers.letIn(raw.socket, caller.name !== null);
      return caller;
    } catch (error) {
      strangers.refused(raw.socket);
      throw error;
    }
  };
  api.addHook('onRequest', async (request) => {
    request.caller = identify(request);
    if (request.is404) return Promise.resolve();
    const { role } = request.routeOptions.config;
    if (role === undefined) throw lacking(`${request.method} ${request.url}`, ROLE);
    // Before the role: of what is outside of a caller's scope, no refused call enters the audit.
    const beyond = refusedByScope(request);
    if (!mayCall(request.caller.role, role)) onRefused(refusedCall(request, role));
    access.authorize(request.raw, request.caller, role);
    if (beyond === null) return Promise.resolve();
    onRefused(refusedCall(request, 'another scope'));
    access.refuse(request.raw, request.caller, 'scope');
    throw beyond;
  });
  noteOtherSites(api, { access, onRefused });
  guardRuns(api, database);
  letCallsWait(api, { access, strangers });
}

/** The browser rules refuse a call before anybody asks who makes it: of a known token that enters the audit as well. */
function noteOtherSites(api: Api, { access, onRefused }: Pick<GuardDeps, 'access' | 'onRefused'>): void {
  api.addHook('onError', async (request, _reply, error) => {
    const isAsked = (request.caller as Caller | null) !== null;
    const saysWho = ['authorization', 'x-firelock-user'].some((name) => name in request.headers);
    if (isAsked || request.is404 || !saysWho || !(error instanceof Problem) || error.status !== 403) return;
    try {
      request.caller = access.identify(request.raw);
      refusedByScope(request);
      if (request.caller.name !== null) onRefused(refusedCall(request, 'a page of this site'));
    } catch {
      // Nobody knows the caller, or what it names is not there for it.
    }
    await Promise.resolve();
  });
}

function refusedCall({ caller, method, params, routeOptions }: FastifyRequest, needs: string): RefusedCall {
  const { url = '', config } = routeOptions;
  const { id, queue } = params as { id?: string; queue?: string };
  const subject = idOrNull(id);
  return {
    caller,
    action: config.audits?.[0] ?? null,
    subject,
    scheduleId: url.includes('/schedules/:id') ? subject : null,
    name: typeof config.scope === 'object' && config.scope.name !== 'schedule' ? idOrNull(queue ?? id) : null,
    detail: { call: `${method} ${url}`, needs },
  };
}

/** A caller may send anything as an id, and megabytes of it. */
function idOrNull(sent: string | undefined): string | null {
  return sent !== undefined && /^[\w.-]{1,128}$/.test(sent) ? sent : null;
}

function lacking(route: string, { what, how }: { what: string; how: string }): Error {
  return new Error(`the route ${route} does not say ${what}: add ${how}`);
}

const ROLE = {
  what: 'who may call it',
  how:
    '"config: { role: … }" to its options, with viewer (it only reads), worker (queue claims and reports on runs), operator (it acts ' +
    'on runs), admin (everything else), or any (every role)',
};
const SCOPE = {
  what: "how it keeps to the caller's scope",
  how: '"scope: …" to its config, with a ScopeRule (api/access/guard.ts)',
};
const AUDITS = {
  what: 'what it writes into the audit',
  how:
    '"audits: [ … ]" to its config, with the actions of core/audit.ts (the first one is what a refused call of it is named), or with ' +
    'none if it changes nothing that is audited',
};

/**
 * Counts the calls of each caller that are under way, from their headers to their answer. The work for a client that has
 * gone goes on, so it is counted to its end: else a caller could have any amount of work under way by hanging up.
 */
export function countCallsUnderWay(api: Api, access: Access): void {
  const working = new WeakMap<FastifyRequest, Promise<unknown>>();
  api.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function noteWork(request, reply) {
      const work: unknown = handler.call(this, request, reply);
      if (work instanceof Promise) working.set(request, work);
      return work;
    };
  });
  api.addHook('onRequest', async (request, reply) => {
    if (request.is404) return Promise.resolve();
    const leave = access.enter(request.raw, request.routeOptions.config.pace ?? 'usual');
    reply.raw.once('close', () => void Promise.resolve(working.get(request)).then(leave, leave));
    return Promise.resolve();
  });
}

/**
 * How a route keeps to the caller's scope. `unscoped`: only callers without a scope may call it. `nameless`: it neither reads nor
 * changes what has a name. `name`: its path names a thing of this kind, which the guard checks. `run`: its path names a run, which the
 * guard looks for in the database. `itself`: its handler hands `caller.scope` to all that it reads and changes. Names in a body are
 * always the handler's.
 */
type ScopeRule =
  | 'unscoped'
  | 'nameless'
  | 'run'
  | 'itself'
  | { name: 'schedule' | 'calendar' | 'limit' | 'connection' | 'notifier' | 'queue' };

/** A call that a scope does not allow though it may know that the thing is there; null: it is allowed. @throws Problem 404 */
function refusedByScope({ caller, params, routeOptions }: FastifyRequest): Problem | null {
  const { scope: rule, role } = routeOptions.config;
  if (caller.scope === null || rule === undefined) return null;
  if (rule === 'unscoped') return new Problem(403, `this call is for callers without a scope; ${yoursIs(caller)}`);
  if (typeof rule === 'string') return null;
  const { id, queue = id } = params as { id?: string; queue?: string };
  const name = queue ?? '';
  if (owns(caller.scope, name)) return null;
  if (!sees(caller.scope, name)) throw noSuch(`${rule.name} of this id in your scope`);
  if (onlyReads(role)) return null;
  return new Problem(403, `${rule.name} ${name} is shared: you may read and name it; ${yoursIs(caller)}`);
}

/** Answers 404 for a run that the caller's scope does not have, as for one that is not there. */
function guardRuns(api: Api, database: Database): void {
  api.addHook('preHandler', async ({ caller, params, routeOptions }) => {
    const { scope: rule, role } = routeOptions.config;
    if (rule !== 'run' || caller.scope === null) return;
    const { id } = params as { id: string };
    const isThere = await database.run((db) => isRunInScope(db, id, caller.scope, useOf(role, caller)));
    if (!isThere) throw noSuch(`run ${id}`);
  });
}

/** Where any role may call, it reads: a worker what it may work on. */
function useOf(needed: RoleNeeded | undefined, { role }: Caller): RunUse {
  if (needed === 'worker' || (needed === 'any' && role === 'worker')) return 'work';
  return needed === 'any' || onlyReads(needed) ? 'read' : 'act';
}

function onlyReads(role: RoleNeeded | undefined): boolean {
  return role === 'viewer';
}

function yoursIs({ scope }: Caller): string {
  return `yours is ${scopeText(scope ?? [])}`;
}
