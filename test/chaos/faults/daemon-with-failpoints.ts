/**
 * The daemon, composed with parts that stop or end its process between two steps. CHAOS_FAILPOINT is
 * `WHEN:STEP:ACTION:COUNT`: `after:recordPlanned:kill:2` ends it after the second answer to the statement that
 * recordPlanned() sent. A step is a function of the daemon that asks the database, or one of the target's. ACTION:
 * `kill`, `stop` (frozen until another process continues it), `lose` (of the database's: done, and reported as failed).
 */
import { writeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as ConfigModule from '../../../src/config/config.ts';
import type { HandoffTarget } from '../../../src/core/schedules/schedule.ts';
import type * as DaemonModule from '../../../src/daemon/daemon.ts';
import type * as LoggerModule from '../../../src/observability/log/logger.ts';
import type * as DatabaseModule from '../../../src/postgres/database.ts';
import type * as HttpModule from '../../../src/targets/http.ts';
import type { TargetKind } from '../../../src/targets/target.ts';

const { CHAOS_FAILPOINT = '', CHAOS_FAILPOINT_FILE = '', CHAOS_ROOT = '' } = process.env;
const [when = '', step = '', action = '', count = '1'] = CHAOS_FAILPOINT.split(':');
let left = Number(count);

// isAskedBy() looks for a function that may be many calls away from the statement.
Error.stackTraceLimit = 50;

// Whose source is run is for the campaign to say: this repository's, or that of a mutant.
const load = async <Module>(path: string) =>
  (await import(pathToFileURL(join(CHAOS_ROOT, 'src', path)).href)) as Module;
const { readConfig } = await load<typeof ConfigModule>('config/config.ts');
const { createDaemon } = await load<typeof DaemonModule>('daemon/daemon.ts');
const { createLogger } = await load<typeof LoggerModule>('observability/log/logger.ts');
const { openDatabase } = await load<typeof DatabaseModule>('postgres/database.ts');
const { createHttpTarget } = await load<typeof HttpModule>('targets/http.ts');

const read = readConfig(process.env);
if ('faults' in read) throw new Error(read.faults.join('\n'));
const { config } = read;
const daemon = createDaemon(
  {
    config,
    databaseUrl: config.databaseUrl ?? '',
    version: 'failpoints',
    logger: createLogger(config.logLevel, process.stdout),
    onStuck: () => process.exit(1),
  },
  {
    openDatabase: (...asked) => watched(openDatabase(...asked)),
    httpTarget: (deps) => watchedTarget(createHttpTarget(deps)),
  },
);
await daemon.start();
process.once('SIGTERM', () => void daemon.stop().then(() => process.exit(0)));

function watched(database: DatabaseModule.Database): DatabaseModule.Database {
  const around = async <T>(work: () => Promise<T>): Promise<T> => {
    const asks = isAskedBy(step);
    if (asks && when === 'before') act();
    const answer = await work();
    if (asks && when === 'after') act();
    return answer;
  };
  return {
    ...database,
    run: (work, limitMs) => around(() => database.run(work, limitMs)),
    transaction: (work, limitMs) => around(() => database.transaction(work, limitMs)),
  };
}

/** A statement has no name, but the function that sends it is on the stack. */
function isAskedBy(name: string): boolean {
  return name !== '' && new RegExp(`\\bat (async )?${name} \\(`).test(new Error().stack ?? '');
}

function watchedTarget<T extends HandoffTarget<string>>(kind: TargetKind<T>): TargetKind<T> {
  const at = (moment: string, name: string) => {
    if (when === moment && step === name) act();
  };
  return {
    type: kind.type,
    laneOf: (target) => kind.laneOf(target),
    hasLookup: (target) => kind.hasLookup(target),
    hasCancel: (target) => kind.hasCancel(target),
    cancel: (target, attempt, signal) => kind.cancel(target, attempt, signal),
    close: () => kind.close(),
    lookup: async (target, attempt, signal) => {
      at('before', 'lookup');
      const answer = await kind.lookup(target, attempt, signal);
      at('after', 'lookup');
      return answer;
    },
    deliver: async (target, attempt, signal) => {
      const mayStart = () => {
        const may = attempt.mayStart();
        const isAsked = kind.hasLookup(target) && attempt.delivery === 'atMostOnce';
        if (may) at('after', 'mayStart');
        if (may && isAsked) at('after', 'mayStartWithLookup');
        return may;
      };
      const outcome = await kind.deliver(target, { ...attempt, mayStart }, signal);
      if (outcome.kind === 'accepted') at('after', 'deliver');
      return outcome;
    },
  };
}

function act(): void {
  left -= 1;
  if (left !== 0) return;
  writeSync(openSync(CHAOS_FAILPOINT_FILE, 'w'), CHAOS_FAILPOINT);
  if (action === 'lose') throw new Error('the failpoint lost the answer');
  process.kill(process.pid, action === 'kill' ? 'SIGKILL' : 'SIGSTOP');
  // A signal to oneself takes a moment; nothing more happens in between.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
}
