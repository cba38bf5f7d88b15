import type { MigrationWait } from '../core/migration-wait.ts';
import { InstancesLive, type Resumed, resumeFromNow } from '../operations/resume.ts';
import { isoInstant } from '../core/instant.ts';
import { reasonOf } from '../runtime/reason.ts';
import { openDatabase } from '../postgres/database.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
import { migrate } from '../postgres/migrate.ts';
import { waitLine } from './migrate-command.ts';

export interface ResumeOptions {
  databaseUrl: string;
  migrationDatabaseUrl: string | undefined;
  lockTtlSeconds: number;
  signal: AbortSignal;
  print: (line: string) => void;
}

/** The command `firelock resume --from-now`; answers the exit code. Prints what it did, or why it did not. */
export async function resume(options: ResumeOptions): Promise<number> {
  const { databaseUrl, migrationDatabaseUrl, print, ...rest } = options;
  const database = openDatabase(databaseUrl, 1);
  try {
    // Migrating waits long for another process that already migrates; but if the server does not answer at all, the
    // command says so at once.
    await database.run(databaseNow);
    const onWait = (wait: MigrationWait) => print(waitLine(wait));
    await migrate(migrationDatabaseUrl ?? databaseUrl, { signal: options.signal, onWait });
    for (const line of linesOf(await resumeFromNow({ database, ...rest }))) print(line);
    return 0;
  } catch (error) {
    for (const line of refusal(error, options.signal)) print(line);
    return 1;
  } finally {
    await database.close();
  }
}

function linesOf({ now, moved, skipped, fenced, unplannable, runs, resting }: Resumed): string[] {
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

function refusal(error: unknown, signal: AbortSignal): string[] {
  if (error instanceof InstancesLive) {
    return [
      'nothing more is done while an instance lives, since it may be planning what is to be skipped; stop these first:',
      ...error.instances.map(
        ({ id, host, livesForSeconds }) =>
          `  ${id} on ${host} (if it is gone already, it counts as living for ${livesForSeconds} s more)`,
      ),
    ];
  }
  const why = signal.aborted ? 'interrupted' : `failed: ${reasonOf(error)}`;
  return [`${why}; what was done so far stays done, run it again for the rest`];
}
