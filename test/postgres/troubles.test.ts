import { sql } from 'drizzle-orm';
import { expect, it, onTestFinished } from 'vitest';
import { toProblem } from '../../src/api/http/problem.ts';
import { openDatabase, tellingTroubles } from '../../src/postgres/database.ts';
import type { FirelockEvent } from '../../src/core/events.ts';
import { THROUGH_POOLER } from '../support/postgres/pooler.ts';
import { roleOfTest } from '../support/postgres/role.ts';

/** What the API answers when the work fails, and how often the database was said to be the reason. */
async function answerTo(url: string, statement = 'SELECT 1') {
  const told: FirelockEvent[] = [];
  const database = tellingTroubles(openDatabase(url, 1), { emit: (event) => void told.push(event) });
  onTestFinished(() => database.close());
  const failed = await database
    .run((db) => db.execute(sql.raw(statement)))
    .then(
      () => null,
      (error: unknown) => error,
    );
  const { status, message } = toProblem(failed);
  return { status, message, told: told.map(({ type }) => type) };
}

const because = (message: string | RegExp) => ({
  status: 503,
  message: typeof message === 'string' ? message : (expect.stringMatching(message) as string),
  told: ['databaseFailed'],
});

// A pooler has reasons of its own.
it.skipIf(THROUGH_POOLER)('the API says why the database does not do its work', async () => {
  const { url, name, admin } = await roleOfTest();
  expect(await answerTo(url.replace('daemon', 'wrong'))).toEqual(because(/refuses the login/));
  expect(await answerTo(`${url}_gone`)).toEqual(because('the database does not exist'));
  expect(await answerTo(url.replace(/:\d+\//, ':9/'))).toEqual(because('the database is out of reach'));
  await admin.unsafe(`CREATE TABLE of_others (); ALTER ROLE ${name} CONNECTION LIMIT 0`);
  expect(await answerTo(url)).toEqual(because('the database has too many connections'));
  await admin.unsafe(`ALTER ROLE ${name} CONNECTION LIMIT -1`);
  expect(await answerTo(url, 'SELECT FROM of_others')).toEqual(because(/lacks a right/));
  const raised = (code: string) => answerTo(url, `DO $$ BEGIN RAISE SQLSTATE '${code}'; END $$`);
  expect(await raised('53100')).toEqual(because('the disk of the database is full'));
  expect(await raised('57P01')).toEqual(because('the database is shutting down or starting'));
  // What a caller has sent is the caller's.
  expect(await raised('22003')).toMatchObject({ status: 400, told: [] });
});
