import { isoInstant, isoOrNull } from '../core/instant.ts';
import type { MigrationWait } from '../core/own-resources.ts';
import { createKeyRing } from '../core/secrets/key-ring.ts';
import { InstancesLive, type Resumed, resumeFromNow } from '../operations/resume.ts';
import { type CursorsSetBack, setBackCursors } from '../operations/set-back-cursors.ts';
import { observe } from '../operations/installation-changes.ts';
import { type Rotation, rotateSecrets } from '../operations/rotate-secrets.ts';
import { type Database, openDatabase } from '../postgres/database.ts';
import { dumpDatabase, MayBeRestored, restoreDatabase } from '../postgres/dump/dump-database.ts';
import { migrate } from '../postgres/migrate.ts';
import { grantTo } from '../postgres/privileges.ts';
import { databaseNow } from '../postgres/sql/rows.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { DatabaseOptions } from './surroundings.ts';

/** `firelock migrate [--grant-to ROLE]`; as all of these it answers the exit code, and prints what it did or why it did not. */
export function migrateDatabase(options: DatabaseOptions, role: string | undefined): Promise<number> {
  const { databaseUrl, migrationDatabaseUrl = databaseUrl, print } = options;
  const work = async (database: Database) => {
    const applied = await migrateTo(migrationDatabaseUrl, options);
    print(applied === 0 ? 'the schema is up to date' : `migrations applied: ${applied}`);
    if (role !== undefined) {
      await database.transaction((tx) => grantTo(tx, role));
      print(`role ${role} has the rights that the daemon needs`);
    }
    return 0;
  };
  return onDatabase(migrationDatabaseUrl, options, work, (error) => [`failed: ${reasonOf(error)}`]);
}

/** `firelock resume --from-now` */
export function resume(options: DatabaseOptions): Promise<number> {
  const { databaseUrl, migrationDatabaseUrl = databaseUrl, print, lockTtlSeconds, signal } = options;
  const work = async (database: Database) => {
    await migrateTo(migrationDatabaseUrl, options);
    const ahead = await setBackCursors({ database, signal });
    for (const line of setBackLines(ahead)) print(line);
    const resumed = await resumeFromNow({ database, lockTtlSeconds, signal }).catch((error: unknown) => {
      // That was all there is to do while instances run: they fire what is due.
      if (error instanceof InstancesLive && ahead.setBack + ahead.runs > 0) return null;
      throw error;
    });
    for (const line of resumed === null ? [INSTANCES_RUN] : resumedLines(resumed)) print(line);
    return 0;
  };
  return onDatabase(databaseUrl, options, work, (error) =>
    error instanceof InstancesLive
      ? livingLines(error, 'may be planning the fires that are to be skipped')
      : [undone(error, signal)],
  );
}

const INSTANCES_RUN = 'instances are running, and fire what is due: nothing was skipped';

/** `firelock observe [--reason TEXT]` */
export function observeOnly(options: DatabaseOptions, reason: string | null): Promise<number> {
  const { databaseUrl, migrationDatabaseUrl = databaseUrl, print } = options;
  const work = async (database: Database) => {
    await migrateTo(migrationDatabaseUrl, options);
    const since = await database.transaction((tx) => observe(tx, reason));
    print(`the instances of this database only observe, since ${isoOrNull(since) ?? 'now'}, until firelock take-over`);
    return 0;
  };
  return onDatabase(databaseUrl, options, work, (error) =>
    error instanceof InstancesLive ? livingLines(error, 'may be firing') : [`failed: ${reasonOf(error)}`],
  );
}

/** `firelock rotate-secrets`; 0 once everything is encrypted with the first key. */
export async function rotate(options: DatabaseOptions): Promise<number> {
  const { databaseUrl, secretKeys, signal, print } = options;
  const [first, ...others] = secretKeys.map(({ id }) => id);
  if (first === undefined) {
    print('there is no key to encrypt with: set FIRELOCK_SECRET_KEYS (docs/secrets.md)');
    return 1;
  }
  const work = async (database: Database) => {
    const rotation = await rotateSecrets({ database, secrets: createKeyRing(secretKeys), signal });
    for (const line of rotationLines(rotation, first, others)) print(line);
    const isDone = [...rotation.byKey.keys()].every((id) => id === first);
    return isDone && rotation.unreadable.length === 0 ? 0 : 1;
  };
  return onDatabase(databaseUrl, options, work, (error) => [undone(error, signal)]);
}

/** `firelock database dump FILE` */
export function dump(options: DatabaseOptions, path: string, version: string): Promise<number> {
  const { databaseUrl, signal, print, secretKeys } = options;
  const work = async () => {
    print(`rows in ${path}: ${await dumpDatabase(databaseUrl, { path, version, signal })}`);
    if (secretKeys.length > 0) print(keysLine(secretKeys.map(({ id }) => id)));
    return 0;
  };
  return onDatabase(databaseUrl, options, work, (error) => [`failed: ${reasonOf(error)}`]);
}

function keysLine(ids: readonly string[]): string {
  const keys = ids.length === 1 ? 'the key' : 'one of the keys';
  return `its secrets are encrypted with ${keys} ${ids.join(', ')}, which is not in it: keep FIRELOCK_SECRET_KEYS, or the embedded PostgreSQL's file secret-key, beside it`;
}

/** `firelock database restore FILE` */
export function restore(options: DatabaseOptions, path: string): Promise<number> {
  const { databaseUrl, migrationDatabaseUrl: url = databaseUrl, signal, print } = options;
  const work = async () => {
    await migrateTo(url, options);
    print(`rows restored: ${await restoreDatabase(url, { path, signal })}`);
    print('what was due since the dump is fired once an instance starts, unless you call: firelock resume --from-now');
    return 0;
  };
  return onDatabase(url, options, work, (error) => [
    error instanceof MayBeRestored
      ? `unknown: ${reasonOf(error)}; restore again: a database that has them is refused as not empty, and is whole`
      : `failed: ${reasonOf(error)}; nothing was restored`,
  ]);
}

async function onDatabase(
  url: string,
  { print }: DatabaseOptions,
  work: (database: Database) => Promise<number>,
  failure: (error: unknown) => string[],
): Promise<number> {
  const database = openDatabase(url, 1);
  try {
    // Migrating waits long for another process that already migrates; but if the server does not answer at all, the
    // command says so at once.
    await database.run(databaseNow);
    return await work(database);
  } catch (error) {
    for (const line of failure(error)) print(line);
    return 1;
  } finally {
    await database.close();
  }
}

function migrateTo(url: string, { signal, print }: DatabaseOptions): Promise<number> {
  return migrate(url, { signal, onWait: (wait) => print(waitLine(wait)) });
}

function waitLine({ migration, statement, error, statementTimeout, tries, retryInMs, oldest }: MigrationWait): string {
  const inTheWay =
    statementTimeout !== null
      ? `; its role or database has statement_timeout = ${statementTimeout}: ALTER ROLE … SET statement_timeout = 0`
      : oldest === null
        ? ''
        : `; the oldest transaction is in backend ${oldest.pid} and began ${oldest.seconds} s ago`;
  return `migration ${migration} waits (try ${tries}, the next in ${retryInMs / 1000} s): ${statement}: ${error}${inTheWay}`;
}

function undone(error: unknown, signal: AbortSignal): string {
  const why = signal.aborted ? 'interrupted' : `failed: ${reasonOf(error)}`;
  return `${why}; completed changes are kept, run the command again for the rest`;
}

function setBackLines({ now, setBack, made, fenced, unplannable, runs }: CursorsSetBack): string[] {
  const ofRuns = `runs that were written while the clock of the database was ahead, and go on as of now: ${runs}`;
  if (setBack + fenced + unplannable.length === 0) return runs === 0 ? [] : [ofRuns];
  return [
    `schedules that were planned while the clock of the database was ahead, set back to ${isoInstant(now)}: ${setBack}`,
    `fires after that which have a run already, and are not made again: ${made}`,
    ...(runs === 0 ? [] : [ofRuns]),
    ...(fenced === 0
      ? []
      : [`schedules planned or edited in the meantime, and not set back: ${fenced}; run the command again`]),
    ...unplannable.map(({ scheduleId, error }) => `schedule ${scheduleId} was not set back: ${reasonOf(error)}`),
  ];
}

function resumedLines({ now, moved, skipped, fenced, unplannable, runs, resting }: Resumed): string[] {
  return [
    `resumed from ${isoInstant(now)}: what is due after that fires as usual`,
    `schedules moved to their next fire: ${moved}`,
    `fires skipped: ${skipped}, recorded as one run per schedule (status skipped, reason missed)`,
    `schedules not touched: ${resting.paused} paused, ${resting.ended} ended, ${resting.inError} in error`,
    ...(fenced === 0 ? [] : [`schedules edited in the meantime, and not moved: ${fenced}; run the command again`]),
    ...unplannable.map(({ scheduleId, error }) => `schedule ${scheduleId} was not moved: ${reasonOf(error)}`),
    `pending at-most-once runs that may have been sent, now marked unknown: ${runs.ended}`,
    `pending runs whose target will first be asked whether it has them: ${runs.asked}`,
    `pending runs that will be sent under their ids: ${runs.left}`,
  ];
}

function livingLines({ instances }: InstancesLive, why: string): string[] {
  return [
    `an instance is still running, and ${why}; stop these first:`,
    ...instances.map(
      ({ id, host, livesForSeconds }) =>
        `  ${id} on ${host} (if it has stopped already, wait ${livesForSeconds} s: its heartbeat counts until then)`,
    ),
  ];
}

function rotationLines({ rotated, byKey, unreadable }: Rotation, first: string, others: readonly string[]): string[] {
  const foreign = [...byKey.keys()].filter((id) => id !== first && !others.includes(id));
  return [
    `values re-encrypted with key ${first}: ${rotated}`,
    `values encrypted with key ${first}: ${byKey.get(first) ?? 0}`,
    ...others.map((id) => oldKeyLine(id, byKey.get(id) ?? 0)),
    ...foreign.map(
      (id) => `values encrypted with key ${id}, which is not in FIRELOCK_SECRET_KEYS: ${byKey.get(id) ?? 0}`,
    ),
    ...unreadable.map(({ what, error }) => `${what} was skipped: ${reasonOf(error)}`),
  ];
}

function oldKeyLine(id: string, left: number): string {
  return left === 0
    ? `values encrypted with key ${id}: 0; remove it once no instance encrypts with it`
    : `values encrypted with key ${id}: ${left}, which could not be decrypted or were locked; run the command again`;
}
