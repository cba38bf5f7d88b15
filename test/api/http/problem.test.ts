import { expect, test } from 'vitest';
import { toProblem } from '../../../src/api/http/problem.ts';
import { changeOrRefuse } from '../../../src/api/schedules/writes.ts';
import type { ApiDeps } from '../../../src/api/deps.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { createMigratedDatabase } from '../../support/postgres/migrated-database.ts';

const thrown = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test.each([new RangeError('Maximum call stack size exceeded'), new TypeError('x is not a function')])(
  'a mistake of the program is 500, and keeps its cause for the log: %s',
  (mistake) => {
    expect(toProblem(mistake)).toMatchObject({ status: 500, cause: mistake });
    expect(toProblem(new Error('wrapped', { cause: mistake })).status).toBe(500);
    expect(toProblem(mistake).message).not.toContain(mistake.message);
  },
);

test('a value that the database cannot store is 400, and a mistake of the program with a value is 500', async () => {
  const { url, drop } = await createMigratedDatabase();
  const database = openDatabase(url, 1);
  const invalidTime = () => Promise.reject(new RangeError('Invalid time value'));
  for (const refused of [
    await thrown(database.run(invalidTime)),
    await thrown(database.transaction(invalidTime)),
  ])
    expect(toProblem(refused)).toMatchObject({ status: 400, cause: refused });
  const decide = () => {
    throw new TypeError('no function');
  };
  const mistake = await thrown(
    changeOrRefuse(
      { database } as unknown as ApiDeps,
      [{ id: 'x', by: null, scope: null, decide }],
      () => '',
    ),
  );
  expect(toProblem(mistake).status).toBe(500);
  await database.close();
  await drop();
});
