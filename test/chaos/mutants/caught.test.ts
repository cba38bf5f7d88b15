// @module-tag long
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NEEDS_LINUX } from '../cluster/instance.ts';
import { runMutants } from './mutant-run.ts';

/** One of each kind of campaign, among those that are noticed soonest; `npm run chaos -- --mutants` runs all. */
const FEW = ['no-unique-key', 'released-by-the-first-end'];

it.for(FEW)('the checker notices %s', async (only, { skip }) => {
  if (process.platform !== 'linux') skip(NEEDS_LINUX);
  const said: string[] = [];
  const [result] = await runMutants({
    ...{ only, seed: 20261127, control: false },
    root: join(import.meta.dirname, '..', '..', '..'),
    say: (line) => said.push(line),
  });
  expect(result?.ok, said.join('\n')).toBe(true);
});
