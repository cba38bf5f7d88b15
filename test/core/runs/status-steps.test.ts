import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it, test } from 'vitest';
import { CANCELLABLE, RETRIABLE, decideComplete } from '../../../src/core/runs/run-decisions.ts';
import { RUN_STATUSES } from '../../../src/core/runs/run.ts';
import { mayBecome, STATUS_STEPS } from '../../../src/core/runs/transitions.ts';
import type { Transaction } from '../../../src/postgres/executor.ts';
import { recordRuns, saveLockedRuns } from '../../../src/store/runs/lock-and-save.ts';
import { runRecord } from '../../support/run-record.ts';

const ROOT = join(import.meta.dirname, '../../..');
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** As `from to`, of a run that is being recorded `recorded to`. */
const arrowsOf = (from: readonly (string | null)[], to: readonly string[]) =>
  from.flatMap((one) => to.map((other) => `${one ?? 'recorded'} ${other}`));
const stepsBy = (by: string) =>
  STATUS_STEPS.flatMap(([from, to, name]) => (name === by ? arrowsOf(from, to) : [])).sort();
/** Every arrow, and the one that leads back: between two attempts a run is pending. */
const ARROWS = new Set([...STATUS_STEPS.flatMap(([from, to]) => arrowsOf(from, to)), 'pending pending']);

describe('the steps of a run', () => {
  it('are those that decisions allow', () => {
    expect(stepsBy('reopenRun')).toEqual(arrowsOf(RETRIABLE, ['pending', 'waiting']).sort());
    expect(RUN_STATUSES.filter((from) => ARROWS.has(`${from} cancelled`))).toEqual(CANCELLABLE);
    const facts = {
      trigger: 'schedule' as const,
      reason: null,
      attempts: 1,
      attemptInDoubt: null,
      workerId: null,
      openDependencies: null,
      observed: false,
    };
    const report = { attempt: null, workerId: null, error: null } as const;
    const reported = RUN_STATUSES.flatMap((from) =>
      (['succeeded', 'failed'] as const).flatMap((status) => {
        const { kind } = decideComplete({ ...facts, status: from }, { ...report, status });
        return kind === 'write' ? [`${from} ${status}`] : [];
      }),
    );
    expect(stepsBy('endAsReported')).toEqual(reported.sort());
  });

  it('are the only ones that are written, beside those that leave the status as it is', async () => {
    const nothing = { execute: () => Promise.reject(new Error('it was written')) } as unknown as Transaction;
    for (const from of RUN_STATUSES) {
      for (const to of RUN_STATUSES) {
        const change = { from: runRecord({ status: from }), to: runRecord({ status: to }) };
        const may = from === to || ARROWS.has(`${from} ${to}`);
        const refusal = may ? 'it was written' : `cannot go from ${from} to ${to}`;
        await expect(saveLockedRuns(nothing, [change])).rejects.toThrow(refusal);
      }
      const refusal = ARROWS.has(`recorded ${from}`) ? 'it was written' : `cannot be recorded as ${from}`;
      await expect(recordRuns(nothing, [runRecord({ status: from })])).rejects.toThrow(refusal);
    }
  });

  it('lead from every open status to an end, and from no success anywhere', () => {
    for (const from of ['waiting', 'pending', 'running'] as const) expect(mayBecome(from, 'cancelled')).toBe(true);
    expect(RUN_STATUSES.filter((to) => mayBecome('succeeded', to))).toEqual(['succeeded']);
  });
});

describe('the pages', () => {
  const concepts = textOf('docs/concepts.md');

  test('concepts.md lists each step with its function, and where that stands', () => {
    const rows = [...concepts.matchAll(/^\| (.+?) +\| (.+?) +\| .+ \| `(\w+)` in `(.+?)` +\|$/gm)];
    const listed = rows.map(([, from = '', to = '', by = '']) => [...arrowsOf(listOf(from), listOf(to)), by]);
    const steps = STATUS_STEPS.map(([from, to, by]) => [...arrowsOf(from, to), by]);
    expect(listed.sort()).toEqual(steps.sort());
    for (const [, , , by = '', file = ''] of rows)
      expect(textOf(`src/${file}`)).toMatch(new RegExp(`^export (async )?function ${by}\\b`, 'm'));
  });

  test('concepts.md draws each step', () => {
    const aliases = new Map<string, string>();
    for (const [, list = '', alias = ''] of concepts.matchAll(/^ *state "(.+)" as (\w+)$/gm)) aliases.set(alias, list);
    const drawn = [...concepts.matchAll(/^ *(\[\*\]|\w+) --> (\w+): .+$/gm)].flatMap(([, from = '', to = '']) =>
      arrowsOf(listOf(from === '[*]' ? 'recorded' : (aliases.get(from) ?? from)), [to]),
    );
    expect(new Set(drawn)).toEqual(ARROWS);
  });

  test('architecture.md draws each step', () => {
    const [, drawing = ''] = /## What a run can be\n\n```\n([^]*?)```/.exec(textOf('docs/architecture.md')) ?? [];
    let from = '';
    const drawn = drawing.split('\n').flatMap((line) => {
      const [, first, to] = /^ *([a-z, ]*[a-z])? *[─┬├└]+► ([a-z]+(?:, [a-z]+)*)(?: {2}.*)?$/.exec(line) ?? [];
      from = first ?? from;
      return to === undefined ? [] : arrowsOf(listOf(from), listOf(to));
    });
    expect(new Set(drawn)).toEqual(ARROWS);
  });
});

function listOf(text: string): string[] {
  return text.replaceAll('`', '').split(', ');
}

describe('a statement that gives a run a status', () => {
  const files = ['src/store', 'src/postgres'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  );
  /** It writes whole records; that it refuses what is no step is tested above. */
  const SAVES = 'src/store/runs/lock-and-save.ts';
  /** By its type, its table is one of the named things. */
  const NAMES = 'src/store/names/named-rows.ts';

  test('names its step', () => {
    const faults = files
      .filter((file) => file !== SAVES && file !== NAMES)
      .flatMap((file) => faultsIn(textOf(file)).map((fault) => `${file}: ${fault}`));
    expect(faults).toEqual([]);
    expect(files.filter((file) => textOf(file).includes('WRITTEN_COLUMNS')).sort()).toEqual(
      ['src/store/runs/record-columns.ts', SAVES].sort(),
    );
  });

  test('stands in the file of the function that it names; all such functions are named', () => {
    const named = new Map<string, Set<string>>();
    for (const file of files) {
      const text = textOf(file);
      for (const [, from = '', to = '', by = ''] of text.matchAll(/\bstepTo\(('\w+'|null), '(\w+)', '(\w+)'\)/g)) {
        expect(text).toMatch(new RegExp(`^export async function ${by}\\b`, 'm'));
        const arrow = `${from === 'null' ? 'recorded' : from.slice(1, -1)} ${to}`;
        named.set(by, (named.get(by) ?? new Set()).add(arrow));
      }
    }
    const inCore = new Set(
      textOf('docs/concepts.md')
        .matchAll(/`(\w+)` in `core\/.+?`/g)
        .map(([, name]) => name),
    );
    const ofStore = STATUS_STEPS.map(([, , by]) => by).filter((by) => !inCore.has(by));
    expect([...named.keys()].sort()).toEqual(ofStore.sort());
    for (const [by, arrows] of named) expect([...arrows].sort()).toEqual(stepsBy(by));
  });

  it.each([
    ["UPDATE runs r SET status = 'failed' WHERE r.status = 'pending'"],
    ["UPDATE runs SET attempts = 1, status = CASE WHEN attempts > 3 THEN 'failed' ELSE status END"],
    ["UPDATE runs SET (status, reason) = ('abandoned', 'age')"],
    ["INSERT INTO history (id, status) SELECT id, 'skipped' FROM x"],
    [
      "INSERT INTO runs (id, status) SELECT id, CASE WHEN a THEN ${sql.raw(stepTo(null, 'pending', 'f'))} ELSE 'waiting' END",
    ],
    [
      "WITH a AS (INSERT INTO runs (status) SELECT f.status FROM f), b AS (INSERT INTO history (status) VALUES (${stepTo(null, 'skipped', 'f')}))",
    ],
    ['INSERT INTO ${table} (id, status) SELECT id, s.status FROM s'],
    ['MERGE INTO runs USING x ON true WHEN MATCHED THEN UPDATE SET status = x.status'],
  ])('is a fault if it names none, or not each: %s', (statement) => {
    expect(faultsIn(`const rows = await tx.execute(sql\`${statement}\`);`)).not.toEqual([]);
  });

  test('is a fault in the words of the query builder', () => {
    expect(faultsIn("await tx.update(runs).set({ status: 'failed' });")).not.toEqual([]);
  });

  it.each([
    ["UPDATE runs SET ready = true WHERE status = 'pending' AND claimed_by IS NULL"],
    ["SELECT status = 'pending' FROM runs WHERE id = 1 AND status = 'running'"],
    ["INSERT INTO effects (kind, status) SELECT 'followers', 'skipped' FROM runs"],
    [
      "UPDATE runs SET attempts = 1, status = ${sql.raw(stepTo('pending', 'running', 'claimPullRuns'))} WHERE status = 'pending'",
    ],
  ])('is not any other: %s', (statement) => {
    expect(faultsIn(`const rows = await tx.execute(sql\`${statement}\`);`)).toEqual([]);
  });
});

/** Whatever gives a run a status; a table whose name is computed may be theirs. */
const WRITES =
  /\b(?:INSERT|MERGE) INTO (?:runs|history|all_runs|\$\{\w+)\b|(?:\bSET|,)\s+status\s*=|(?<!new )\bSET\s*\(/gi;
/** A status that is not compared with anything. */
const SAID = new RegExp(`(?<!(?:=|<>)\\s*)'(?:${RUN_STATUSES.join('|')})'`);

/** Statements in a source that give a run a status without `stepTo`, or one more status. */
function faultsIn(source: string): string[] {
  const built = /\.(?:insert|update)\((?:runs|history)\b/.exec(source);
  const written = literalsOf(source).flatMap((text) => {
    const starts = [...text.matchAll(WRITES)].map(({ index, 0: found }) => ({
      index,
      end: index + found.length,
    }));
    return starts.map(({ end }, number) => {
      const [own = ''] = text.slice(end, starts[number + 1]?.index).split(/\bINSERT INTO effects\b/);
      const unnamed = own.replaceAll(/\bstepTo\([^)]*\)/g, '');
      return { isFault: own === unnamed || SAID.test(unnamed), text: text.slice(end - 40, end + 80) };
    });
  });
  return [...(built ? [built[0]] : []), ...written.filter(({ isFault }) => isFault).map(({ text }) => text)];
}

/** Strings and templates, with those within them. */
function literalsOf(source: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTemplateLiteral(node) || ts.isStringLiteral(node)) found.push(node.getText());
    else ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, true));
  return found;
}
