import type { FastifyRequest } from 'fastify';
import type { Caller, RoleNeeded } from '../../core/access/roles.ts';
import { owns, scopeText, sees } from '../../core/access/scope.ts';
import type { Database } from '../../postgres/database.ts';
import { type RunUse, isRunInScope } from '../../store/scopes/in-scope.ts';
import type { Api } from '../deps.ts';
import { Problem, noSuch } from '../http/problem.ts';

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

declare module 'fastify' {
  interface FastifyContextConfig {
    /** How a route under `/api/v1` keeps to the caller's scope. */
    scope?: ScopeRule;
  }
}

/** A call that a scope does not allow though it may know that the thing is there; null: it is allowed. @throws Problem 404 */
export function refusedByScope({ caller, params, routeOptions }: FastifyRequest): Problem | null {
  const { scope: rule, role } = routeOptions.config;
  if (caller.scope === null || rule === undefined) return null;
  if (rule === 'unscoped')
    return new Problem(403, `this call is for callers without a scope; ${yoursIs(caller)}`);
  if (typeof rule === 'string') return null;
  const { id, queue = id } = params as { id?: string; queue?: string };
  const name = queue ?? '';
  if (owns(caller.scope, name)) return null;
  if (!sees(caller.scope, name)) throw noSuch(`${rule.name} of this id in your scope`);
  if (onlyReads(role)) return null;
  return new Problem(403, `${rule.name} ${name} is shared: you may read and name it; ${yoursIs(caller)}`);
}

/** Answers 404 for a run that the caller's scope does not have, as for one that is not there. */
export function guardRuns(api: Api, database: Database): void {
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
