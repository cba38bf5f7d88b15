import { readFile } from 'node:fs/promises';
import type { Access } from '../api/access/access.ts';
import { createInnerServer } from '../api/server.ts';
import { SCHEDULES_FILE_NAME } from '../core/access/roles.ts';
import type { Common, Workers } from './parts.ts';
import { openDatabase } from '../postgres/database.ts';
import { reasonOf } from '../runtime/reason.ts';
import { NotApplied, applyPlan } from '../schedules-file/apply/apply-plan.ts';
import type { ApiCaller } from '../schedules-file/apply/caller.ts';
import { planFile } from '../schedules-file/apply/plan-file.ts';
import { readSchedulesFile } from '../schedules-file/read/read-file.ts';
import { type FileFault, type SchedulesFile, faultLines } from '../schedules-file/schedules-file.ts';
import { keepSchedulesFileLock, lockSchedulesFile } from '../store/schedules/write-schedules.ts';

/** In one line of the log. */
const MAX_NAMED = 100;
/** As long as other instances that start at the same time may take, each for a hundred thousand schedules. */
const LIMIT_MS = 10 * 60_000;

/**
 * Makes the database match FIRELOCK_SCHEDULES_FILE, before the first fire of this instance. Schedules that have not
 * changed keep their version, and what its set has and the file has not stays, unless it says `prune`.
 * If the file has a fault, nothing is applied and the daemon does
 * not start. False: the file has faults, and the process should end.
 * @throws if the database does not answer: the daemon tries again
 */
export async function applySchedulesFile(common: Common, workers: Workers): Promise<boolean> {
  const { config, databaseUrl, logger, onRefused, onStuck } = common;
  const path = config.schedulesFile;
  if (path === undefined) return true;
  const refuse = onRefused ?? ((lines: readonly string[]) => onStuck(lines.join('\n')));
  // Before the lock: to read a long file takes longer than the server leaves an idle transaction alone.
  const file = await fileAt(path, config.fileVariables);
  const database = openDatabase(databaseUrl, 1);
  try {
    const lines = await database.transaction(async (lock) => {
      await lockSchedulesFile(lock);
      const caller = await innerCaller(common, workers, () => keepSchedulesFileLock(lock));
      return apply(common, caller, { path, file });
    }, LIMIT_MS);
    if (lines.length > 0) refuse(['firelock cannot start with FIRELOCK_SCHEDULES_FILE:', ...lines]);
    return lines.length === 0;
  } catch (error) {
    logger.warn(`FIRELOCK_SCHEDULES_FILE is not applied yet: ${reasonOf(error)}`);
    throw error;
  } finally {
    await database.close();
  }
}

/** The faults that keep the daemon from starting; none: the file is applied. */
async function apply(
  { logger, events }: Common,
  caller: ApiCaller,
  { path, file }: { path: string; file: SchedulesFile },
): Promise<string[]> {
  if (file.isBroken) return faultLines(path, file.faults);
  const plan = await planFile(caller, file, { prune: false });
  if (plan.faults.length > 0) return faultLines(path, plan.faults);
  try {
    const { created, updated, deleted } = await applyPlan(caller, plan);
    const { unchanged, left } = plan;
    logger.info({ created, updated, deleted, unchanged }, `applied the schedules file ${path}`);
    events.emit({ type: 'schedulesFileApplied', left: left.length });
    if (left.length > 0)
      logger.warn(
        { set: file.set, schedules: left.length, scheduleIds: left.slice(0, MAX_NAMED) },
        'schedules of the set of FIRELOCK_SCHEDULES_FILE are not in the file, and go on; `prune: true` in the file deletes them',
      );
    return [];
  } catch (error) {
    if (error instanceof NotApplied && error.faults.length > 0) return faultLines(path, error.faults);
    throw error;
  }
}

async function fileAt(path: string, allowed: readonly string[]): Promise<SchedulesFile> {
  const variables = { env: process.env, allowed, allowedBy: 'FIRELOCK_FILE_VARIABLES' };
  try {
    return readSchedulesFile(await readFile(path, 'utf8'), { variables });
  } catch (error) {
    const fault: FileFault = { line: 1, message: `cannot be read: ${reasonOf(error)}` };
    const entries = { limits: [], calendars: [], connections: [], notifiers: [], schedules: [] };
    return { set: null, prune: false, entries, faults: [fault], isBroken: true };
  }
}

/** Calls the routes of the API without a socket and without a token; versions name the file as their author. */
async function innerCaller(
  common: Common,
  { metrics, wake, pullQueues, logFollowers, openRunCaps }: Workers,
  beforeEach: () => Promise<void>,
): Promise<ApiCaller> {
  const caller = { name: SCHEDULES_FILE_NAME, role: 'admin', scope: null } as const;
  const access: Access = {
    identify: () => caller,
    authorize: () => undefined,
    refuse: () => undefined,
    enter: () => () => undefined,
    takeLogBytes: () => undefined,
    standing: () => 'same',
    tokenHashOf: () => null,
    replaceTokens: () => undefined,
  };
  const { pools, config } = common;
  const server = await createInnerServer({
    ...common,
    ...{ database: pools.calls, promptDatabase: pools.api, slowDatabase: pools.background },
    ...{ access, metrics, wake, pullQueues, logFollowers, openRunCaps },
    ...{ retentionDays: config.retentionDays, runLogKib: config.runLogKib },
    ...{ basePath: '', hasSignsElsewhere: true, dashboard: null, learnInstallation: () => undefined },
    installation: () => common.installation.current(),
    takeOver: () => Promise.reject(new Error('a schedules file takes over nothing')),
    readiness: () => ({ status: 'ready', checks: { migrations: 'ok' }, warnings: [] }),
  });
  return {
    send: async (method, path, body, headers = {}) => {
      await beforeEach();
      const { statusCode, payload } = await server.inject({
        method: method as 'GET' | 'PUT' | 'POST' | 'DELETE',
        url: `/api/v1/${path}`,
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { payload: body }),
      });
      return { status: statusCode, text: payload };
    },
  };
}
