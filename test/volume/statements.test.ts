import { describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { BACKGROUND_LOOPS } from './background-loops.ts';
import { FLOW_LOOPS } from './flow-loops.ts';
import type { LoopCase } from './loop-case.ts';
import { OPERATIONS } from './operation-cases.ts';
import { type Volume, volumeOfTest } from './volume.ts';

const LOOPS = { ...FLOW_LOOPS, ...BACKGROUND_LOOPS };
/** So many, and so much more often than for one a statement may be sent for them: once for each hundred. */
const MANY = 200;
const TIMES = 2;
/** Passes of which one finds nothing, or less than all. */
const MORE = 10;

/** The statements that are sent more often for many than they may be, and how often for one and for many. */
function tooOften(forOne: readonly string[], forMany: readonly string[]): Record<string, [number, number]> {
  const countOf = (statements: readonly string[]) => Map.groupBy(statements, (name) => name);
  const [few, many] = [countOf(forOne), countOf(forMany)];
  return Object.fromEntries(
    [...many].flatMap(([name, { length }]): [string, [number, number]][] => {
      const before = few.get(name)?.length ?? 0;
      return length > TIMES * before + MORE ? [[name, [before, length]]] : [];
    }),
  );
}

function loopOf({ loops }: Volume, name: string) {
  const loop = loops.find((one) => one.name === name);
  if (!loop) throw new Error(`the daemon has no loop ${name}`);
  return loop;
}

async function statementsOf(name: string, one: LoopCase, count: number): Promise<string[]> {
  const volume = await volumeOfTest();
  await one.leave(volume, count);
  const { statements, store } = volume;
  const loop = one.loop?.(volume) ?? loopOf(volume, name);
  const working = [loop, ...(one.beside ?? []).map((other) => loopOf(volume, other))];
  statements.length = 0;
  for (const other of working) await other.start();
  await until(async () => {
    if (statements.some((text) => text.startsWith('failed: '))) return true;
    if (!one.left) return (loop.passes() > 0 && loop.inPassMs() === 0) || null;
    return (await store.rows<{ count: number }>(one.left))[0]?.count === 0 || null;
  });
  for (const other of working) await other.stop();
  return statements;
}

describe.each(Object.entries(LOOPS).filter(([, cases]) => typeof cases !== 'string'))('the loop %s', (name, cases) => {
  it.each(cases as LoopCase[])('sends no more statements for a hundred than for one of: $of', async (one) => {
    const few = await statementsOf(name, one, 1);
    const many = await statementsOf(name, one, one.many ?? MANY);
    expect(tooOften(few, many)).toEqual({});
  });
});

it('each loop of the daemon stands in this table, and no other', async () => {
  const { loops } = await volumeOfTest();
  expect(Object.keys(LOOPS).sort()).toEqual(loops.map(({ name }) => name).sort());
});

describe('an operation', () => {
  it.each(OPERATIONS)('sends no more statements for a hundred than for one of: $name', async ({ leave, call }) => {
    const statementsFor = async (count: number) => {
      const volume = await volumeOfTest();
      await leave?.(volume, count);
      volume.statements.length = 0;
      await call(volume, count);
      return volume.statements;
    };
    expect(tooOften(await statementsFor(1), await statementsFor(MANY))).toEqual({});
  });
});
