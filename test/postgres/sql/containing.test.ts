import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { openDatabase } from '../../../src/postgres/database.ts';
import { rowsOf } from '../../../src/postgres/sql/rows.ts';
import { containing } from '../../../src/postgres/sql/lists.ts';
import { createDatabase } from '../../support/postgres/cluster.ts';

test('a text is found in any letter case, also where the locale of the database knows only ASCII', async () => {
  const { url, drop } = await createDatabase();
  const database = openDatabase(url, 1);
  const finds = async (found: string, text: string) => {
    const [row] = await database.run((db) =>
      rowsOf<{ is: boolean }>(db)(sql`SELECT ${containing(sql`${found}::text COLLATE "C"`, text)} AS is`),
    );
    return row?.is;
  };
  try {
    expect(await finds('Prüfung', 'PRÜFUNG')).toBe(true);
    expect(await finds('ÜBERTRAG', 'übertrag')).toBe(true);
    expect(await finds('ЗАРПЛАТА', 'зарплата')).toBe(true);
    expect(await finds('ΛΟΓΟΣ', 'λόγος')).toBe(false);
    expect(await finds('ΛΟΓΟΣ', 'λογος')).toBe(true);
    expect(await finds('Straße 100%_\\', 'SSE')).toBe(false);
    expect(await finds('Straße 100%_\\', 'STRASSE')).toBe(false);
    expect(await finds('Straße 100%_\\', 'ße 100%_\\')).toBe(true);
    expect(await finds('Prufung', 'prüfung')).toBe(false);
    expect(await finds('TITLE', 'title')).toBe(true);
  } finally {
    await database.close();
    await drop();
  }
});
