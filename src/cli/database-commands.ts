import { isoInstant } from '../core/instant.ts';
import type { MigrationWait } from '../core/migration-wait.ts';
import { createKeyRing } from '../core/secrets/key-ring.ts';
import { InstancesLive, type Resumed, resumeFromNow } from '../operations/resume.ts';
import { type Rotation, rotateSecrets } from '../operations/rotate-secrets.ts';
import { type Database, openDatabase } from '../postgres/database.ts';
import { migrate } from '../postgres/migrate.ts';
import { grantTo } from '../postgres/privileges.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
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
      print(`role ${role} may do what the daemon does`);
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
    const resumed = await resumeFromNow({ database, lockTtlSeconds, signal });
    for (const line of resumedLines(resumed)) print(line);
    return 0;
  };
  return onDatabase(databaseUrl, options, work, (error) =>
    error instanceof InstancesLive ? livingLines(error) : [undone(error, signal)],
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

function waitLine({ migration, statement, error, tries, retryInMs, oldest }: MigrationWait): string {
  const inTheWay =
    oldest === null
      ? ''
      : `; the oldest transaction has the backend ${oldest.pid} and began ${oldest.seconds} s ago`;
  return `migration ${migration} waits (try ${tries}, the next in ${retryInMs / 1000} s): ${statement}: ${error}${inTheWay}`;
}

function undone(error: unknown, signal: AbortSignal): string {
  const why = signal.aborted ? 'interrupted' : `failed: ${reasonOf(error)}`;
  return `${why}; what was done so far stays done, run it again for the rest`;
}

function resumedLines({ now, moved, skipped, fenced, unplannable, runs, resting }: Resumed): string[] {
  return [
    `resumed from ${isoInstant(now)}: what is due after that is fired`,
    `schedules moved on: ${moved}`,
    `occurrences skipped: ${skipped}, each schedule's as one run (status skipped, reason missed)`,
    `schedules left alone: ${resting.paused} paused, ${resting.ended} ended, ${resting.inError} in error`,
    ...(fenced === 0
      ? []
      : [`schedules that were edited meanwhile and are left as they are: ${fenced}; run it again`]),
    ...unplannable.map(({ scheduleId, error }) => `schedule ${scheduleId} left alone: ${reasonOf(error)}`),
    `pending at-most-once runs that may have been sent, now unknown: ${runs.ended}`,
    `pending runs whose target is asked before anything is sent: ${runs.asked}`,
    `pending runs that go on under their ids: ${runs.left}`,
  ];
}

function livingLines({ instances }: InstancesLive): string[] {
  return [
    'nothing more is done while an instance lives, since it may be planning what is to be skipped; stop these first:',
    ...instances.map(
      ({ id, host, livesForSeconds }) =>
        `  ${id} on ${host} (if it is gone already, it counts as living for ${livesForSeconds} s more)`,
    ),
  ];
}

function rotationLines(
  { rotated, byKey, unreadable }: Rotation,
  first: string,
  others: readonly string[],
): string[] {
  const foreign = [...byKey.keys()].filter((id) => id !== first && !others.includes(id));
  return [
    `values encrypted anew with the key ${first}: ${rotated}`,
    `values under the key ${first}: ${byKey.get(first) ?? 0}`,
    ...others.map((id) => oldKeyLine(id, byKey.get(id) ?? 0)),
    ...foreign.map(
      (id) => `values under the key ${id}, which is not in FIRELOCK_SECRET_KEYS: ${byKey.get(id) ?? 0}`,
    ),
    ...unreadable.map(
      ({ uid, version, error }) => `version ${version} of ${uid} left alone: ${reasonOf(error)}`,
    ),
  ];
}

function oldKeyLine(id: string, left: number): string {
  return left === 0
    ? `values under the key ${id}: 0; if no instance encrypts with it any more, it can be removed`
    : `values under the key ${id}: ${left}, which could not be decrypted or were locked; run it again`;
}
