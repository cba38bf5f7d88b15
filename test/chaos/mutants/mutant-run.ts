import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CampaignOptions, runCampaign } from '../campaign.ts';
import { type GraphOptions, runGraphCampaign } from '../graph/graph-campaign.ts';
import { type CampaignMutant, type GraphMutant, MUTANTS, type Mutant } from './mutants.ts';

interface MutantRunOptions {
  root: string;
  seed: number;
  /** One mutant's name; null: all of them. */
  only: string | null;
  /** The same campaigns without the edits: each must then find nothing. */
  control: boolean;
  say: (line: string) => void;
}

interface MutantResult {
  name: string;
  why: string;
  /** As it should be: a mutant was caught for one of the reasons it is known to have, a control was not. */
  ok: boolean;
  /** How many campaigns it took. */
  tries: number;
  violations: Record<string, number>;
  examples: string[];
  seconds: number;
}

/** Breaks one thing at a time in a copy of the source, and says whether the campaign made for it notices. */
export async function runMutants(options: MutantRunOptions): Promise<MutantResult[]> {
  const chosen = MUTANTS.filter(({ name }) => options.only === null || name === options.only);
  if (chosen.length === 0) {
    throw new Error(`there is no such mutant; there are ${MUTANTS.map(({ name }) => name).join(', ')}`);
  }
  // All of them first: one that has rotted is known before an hour has gone by.
  for (const mutant of chosen) for (const edit of mutant.edits) await edited(options.root, edit);
  const results: MutantResult[] = [];
  for (const mutant of chosen) {
    const result = await runUntilCaught(mutant, options);
    options.say(line(result, options.control));
    results.push(result);
  }
  return results;
}

/** Some mutants do harm only in a rare moment, which a campaign may miss by chance. */
const MAX_TRIES = 3;

async function runUntilCaught(mutant: Mutant, options: MutantRunOptions): Promise<MutantResult> {
  for (let tries = 1; ; tries++) {
    const result = await runMutant(mutant, { ...options, seed: options.seed + tries - 1 });
    if (result.ok || options.control || tries === MAX_TRIES) return { ...result, tries };
  }
}

async function runMutant(mutant: Mutant, options: MutantRunOptions): Promise<Omit<MutantResult, 'tries'>> {
  const began = performance.now();
  const root = await mkdtemp(join(tmpdir(), 'firelock-mutant-'));
  try {
    for (const part of ['src', 'drizzle', 'package.json']) {
      await cp(join(options.root, part), join(root, part), { recursive: true });
    }
    await symlink(join(options.root, 'node_modules'), join(root, 'node_modules'));
    if (!options.control) {
      for (const edit of mutant.edits) await writeFile(join(root, edit.file), await edited(root, edit));
    }
    const { verdict, directory } = await campaign(mutant, root, options);
    await rm(directory, { recursive: true, force: true });
    const found = Object.entries(verdict.violations).filter(([, { count }]) => count > 0);
    const caught = mutant.caughtBy.some((violation) => found.some(([name]) => name === violation));
    return {
      name: mutant.name,
      why: mutant.why,
      ok: options.control ? verdict.ok : caught,
      violations: Object.fromEntries(found.map(([violation, { count }]) => [violation, count])),
      examples: found.flatMap(([, { examples }]) => examples.slice(0, 1)),
      seconds: Math.round((performance.now() - began) / 1000),
    };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

type Found = Record<string, { count: number; examples: string[] }>;

async function campaign(
  mutant: Mutant,
  root: string,
  options: MutantRunOptions,
): Promise<{ verdict: { ok: boolean; violations: Found }; directory: string }> {
  return 'graph' in mutant
    ? await runGraphCampaign(graphOf(mutant, root, options))
    : await runCampaign(campaignOf(mutant, root, options));
}

function graphOf({ graph }: GraphMutant, root: string, { seed }: MutantRunOptions): GraphOptions {
  return {
    runs: 1_000,
    shape: 'mixed',
    instances: 3,
    killEveryMs: 5_000,
    paceMs: 4,
    limitSeconds: 120,
    ...graph,
    seed,
    root,
    say: () => undefined,
  };
}

function campaignOf(mutant: CampaignMutant, root: string, { seed, control }: MutantRunOptions): CampaignOptions {
  return {
    schedules: 40,
    instances: 3,
    editEveryMs: Infinity,
    fireEveryMs: Infinity,
    rates: { answers: {}, lookupFails: 0 },
    drainSeconds: 30,
    ...mutant.campaign,
    ...(mutant.sql === undefined || control ? {} : { sql: mutant.sql }),
    seed,
    root,
    say: () => undefined,
  };
}

/** The file with the edit in it; fails where what it replaces is not there exactly once, as the mutant then is none any more. */
async function edited(root: string, { file, find, replace }: Mutant['edits'][number]): Promise<string> {
  const text = await readFile(join(root, file), 'utf8');
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times, not once: ${find}`);
  return parts.join(replace);
}

function line({ name, ok, tries, violations, seconds, examples }: MutantResult, control: boolean): string {
  const verdict = control ? (ok ? 'quiet   ' : 'NOT QUIET') : ok ? 'caught  ' : 'SURVIVED';
  const why = Object.entries(violations)
    .map(([violation, count]) => `${violation} ${count}`)
    .join(', ');
  const shown = ok && !control ? '' : examples.map((example) => `\n            ${example}`).join('');
  const campaigns = tries === 1 ? '' : `, campaign ${tries}`;
  return `${verdict} ${name} (${seconds} s${campaigns}) ${why}${shown}`;
}
