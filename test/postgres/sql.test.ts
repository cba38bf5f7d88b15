import { sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EARLIEST, LATEST } from '../../src/core/instant.ts';
import { fromMs, instants, ints, milliseconds, texts, uuids } from '../../src/postgres/sql/arrays.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { schedules } from '../../src/postgres/schema.ts';
import { containing } from '../../src/postgres/sql/lists.ts';
import type { Executor } from '../../src/postgres/executor.ts';
import { rendered } from '../../src/postgres/sql/rendered.ts';
import { recordsOf, rowsOf } from '../../src/postgres/sql/rows.ts';
import { type TestDatabase, createDatabase } from '../support/postgres/cluster.ts';

let created: TestDatabase;
let database: Database;

beforeAll(async () => {
  created = await createDatabase();
  database = openDatabase(created.url, 1);
});

afterAll(async () => {
  await database.close();
  await created.drop();
});

const rows = <T extends object>(statement: ReturnType<typeof sql>) => database.run((db) => rowsOf<T>(db)(statement));

describe('a batch', () => {
  it('carries an instant to the millisecond, written out or as milliseconds, from the first to the last', async () => {
    const random = Array.from({ length: 2_000 }, () => Math.floor(EARLIEST + Math.random() * (LATEST - EARLIEST)));
    const all = [EARLIEST, EARLIEST - 1, 0, -1, LATEST, LATEST - 1, ...random];
    const differing = await rows<{ ms: string }>(
      sql`SELECT ms FROM unnest(${milliseconds(all)}, ${instants(all)}) AS i(ms, at) WHERE ${fromMs(sql`ms`)} <> at`,
    );
    expect(differing).toEqual([]);
    expect(await rows(sql`SELECT ${fromMs(sql`ms`)}::text AS at FROM unnest(${milliseconds([1])}) AS i(ms)`)).toEqual([
      { at: '1970-01-01 00:00:00.001+00' },
    ]);
  });

  it('refuses a value that is no instant on this side', () => {
    expect(() => milliseconds([NaN])).toThrow(RangeError);
    expect(() => milliseconds([Infinity])).toThrow(RangeError);
    expect(() => instants([NaN])).toThrow(RangeError);
  });

  it('has nulls if a column has no value in some rows, or in any', async () => {
    const id = '00000000-0000-0000-0000-000000000001';
    const batch = sql`unnest(${uuids([id, id])}, ${ints([null, 7])}, ${texts([null, null])}, ${milliseconds([null, null])})`;
    expect(await rows(sql`SELECT * FROM ${batch} AS i(id, number, text, ms)`)).toEqual([
      { id, number: null, text: null, ms: null },
      { id, number: 7, text: null, ms: null },
    ]);
  });
});

describe('a text that is made once', () => {
  const asTheBuilderSays = ({ sql: text, params }: ReturnType<PgDialect['sqlToQuery']>) => ({ text, params });

  it('is the one that the query builder makes, with the values of this time', () => {
    const columns = [sql`a`, sql`b`, sql.raw('c')];
    const shapes = [
      (value: unknown) => sql`-- s SELECT ${value}`,
      (value: unknown) => sql`-- s SELECT ${value}${sql``}, ${value}`,
      (value: unknown) => sql`-- s SELECT ${sql.join(columns, sql`, `)} WHERE ${sql`a = ${value} AND ${columns[1]}`}`,
      (value: unknown) => sql`-- s SELECT ${sql.join(columns.slice(1), sql`, `)} WHERE ${sql`a = ${value}`}`,
      (value: unknown) => sql`-- s SELECT ${sql`${value}`} AND ${schedules.uid}, ${undefined}`,
    ];
    for (const value of [1, 'text', '', null, true, 7n, sql`now()`, [1, 2], undefined, schedules, sql.param(3)]) {
      for (const shape of shapes) {
        const builder = asTheBuilderSays(new PgDialect().sqlToQuery(shape(value)));
        expect(asTheBuilderSays(rendered(shape(value)))).toEqual(builder);
        expect(asTheBuilderSays(rendered(shape(value)))).toEqual(builder);
      }
    }
  });

  it('is that one also where a statement has more texts than are kept', () => {
    for (let round = 0; round < 2; round += 1) {
      for (let count = 1; count < 40; count += 1) {
        const list = Array.from({ length: count }, (_, index) => sql`${index}`);
        const { sql: text, params } = rendered(sql`-- many SELECT ${sql.join(list, sql`, `)}`);
        expect(text.endsWith(`$${count}`)).toBe(true);
        expect(params).toEqual(Array.from({ length: count }, (_, index) => index));
      }
    }
  });
});

it('the rows are taken out of the result of the driver, which is collected late', async () => {
  for (const read of [rowsOf, recordsOf]) {
    const result = Object.assign([{ n: 1 }, { n: 2 }], { columns: [{ name: 'n', type: 23 }] });
    const driver = { execute: () => Promise.resolve(result) } as unknown as Executor;
    expect([await read(driver)(sql`SELECT 1`), result.length]).toEqual([[{ n: 1 }, { n: 2 }], 0]);
  }
});

it('a text is found in any letter case, also where the locale of the database knows only ASCII', async () => {
  const finds = async (found: string, text: string) => {
    const [row] = await rows<{ is: boolean }>(sql`SELECT ${containing(sql`${found}::text COLLATE "C"`, text)} AS is`);
    return row?.is;
  };
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
});
