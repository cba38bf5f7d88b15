import { expect, it, test } from 'vitest';
import type { WholeRun } from '../../clients/typescript/src/generated/types.gen.ts';
import { stepsOf } from '../../web/src/pages/run/steps.ts';
import { type LogPiece, createLogReader, isForNow } from '../../web/src/pages/run/log-text.ts';
import { underWaySince } from '../../web/src/parts/under-way.ts';

const START = Date.parse('2031-01-01T00:00:00.000Z');
const at = (seconds: number) => new Date(START + seconds * 1000).toISOString();
const NOW = START + 60_000;

type Attempt = WholeRun['attemptLog'][number];

function attempt(number: number, from: number, to: number, more: Partial<Attempt> = {}): Attempt {
  const times = { startedAt: at(from), finishedAt: at(to) };
  return { attempt: number, instanceId: 'i', ...times, outcome: 'transient', recovery: false, ...more };
}

function run(more: Partial<WholeRun>): WholeRun {
  const open = { finishedAt: null, handedOffAt: null, claimedBy: null, workerId: null, queue: null };
  const base = { scheduledFor: at(0), status: 'pending', dependsOn: [], attemptLog: [], ...open };
  return { ...base, ...more } as unknown as WholeRun;
}

const told = (shown: WholeRun) =>
  stepsOf(shown, NOW).map(({ text, from, to }) => [text, (from - START) / 1000, (to - START) / 1000]);

it('waits and attempts follow each other without a gap, and an open run waits until now', () => {
  const attemptLog = [attempt(2, 20, 21, { recovery: true }), attempt(1, 5, 6)];
  expect(told(run({ attemptLog }))).toEqual([
    ['Waited for its first attempt', 0, 5],
    ['Attempt 1: it did not work, and may later', 5, 6],
    ['Waited', 6, 20],
    ['Attempt 2, taken over by recovery: it did not work, and may later', 20, 21],
    ['Waits for its attempt', 21, 60],
  ]);
});

it('a run that is still to come waits for its moment since it was asked for', () => {
  expect(told(run({ createdAt: at(10), scheduledFor: at(3600) }))).toEqual([['Waits for its moment', 10, 60]]);
});

it('the last attempt of a run that failed for want of another says so, and what the target answered', () => {
  const error = { kind: 'http', message: 'the target answered 503', statusCode: 503 } as const;
  const attemptLog = [attempt(1, 0, 1, { error }), attempt(3, 5, 6, { error })];
  const failed = run({ status: 'failed', failures: 2, finishedAt: at(6), attemptLog });
  expect(stepsOf(failed, NOW).map(({ text, detail }) => [text, detail])).toEqual([
    ['Attempt 1: it did not work, and may later', 'The target answered 503.'],
    ['Waited', null],
    ['Attempt 3 of 3: the last one', 'The target answered 503.'],
  ]);
});

it('the bar of an attempt carries its number and what came of it, and that of a wait nothing', () => {
  const attemptLog = [
    attempt(3, 9, 10, { outcome: 'accepted' }),
    attempt(2, 5, 6, { outcome: 'rejected' }),
    attempt(1, 0, 1),
  ];
  const labels = (shown: WholeRun) => stepsOf(shown, NOW).map(({ label }) => label);
  const over = run({ status: 'succeeded', finishedAt: at(10), attemptLog });
  expect(labels(over)).toEqual(['1: failed', null, '2: refused', null, '3: taken']);
  expect(labels(run({ claimedBy: 'i', attempts: 3, handoffStartedAt: at(0) }))).toEqual(['3: under way']);
});

it('the present step is named: an attempt, a worker, the runs that it depends on', () => {
  expect(told(run({ claimedBy: 'i', attempts: 3, handoffStartedAt: at(10) }))).toEqual([
    ['Attempt 3 is under way', 10, 60],
  ]);
  expect(told(run({ status: 'running', workerId: 'w' }))).toEqual([['A worker works on it', 0, 60]]);
  expect(told(run({ status: 'waiting', dependsOn: ['x'] }))).toEqual([
    ['Waits for the runs that it depends on', 0, 60],
  ]);
});

it('a lookup shows its answer, and nothing follows the end of a run', () => {
  const attemptLog = [attempt(2, 1, 2, { outcome: 'accepted', lookup: 'arrived' })];
  const steps = stepsOf(run({ status: 'succeeded', finishedAt: at(2), handedOffAt: at(2), attemptLog }), NOW);
  expect(steps.map(({ kind }) => kind)).toEqual(['wait', 'lookup']);
  expect(steps[1]?.text).toContain('it had arrived');
});

/** Pieces of one look are one. */
function joined(pieces: readonly LogPiece[]): [text: string, classes: string][] {
  const all: [string, string][] = [];
  for (const { text, classes } of pieces) {
    const last = all.at(-1);
    if (last?.[1] === classes) last[0] += text;
    else all.push([text, classes]);
  }
  return all;
}
const shown = (text: string) => joined(createLogReader().take(Buffer.from(text)));

test('colours become classes, and nothing else of what a terminal would obey is left', () => {
  expect(shown('a\u001b[1;31mb\u001b[22mc\u001b[92;44md\u001b[0me')).toEqual([
    ['a', ''],
    ['b', 'log-bold log-fg-1'],
    ['c', 'log-fg-1'],
    ['d', 'log-fg-2 log-bg-4'],
    ['e', ''],
  ]);
  expect(shown('\u001b[38;5;1mx\u001b[48;2;1;4;31my\u001b[38:2:1:2:3mz\u001b[mw')).toEqual([['xyzw', '']]);
  const hidden = '\u001b]0;title\u0007\u001b[2J\u001b[?25l\u001b(B\u001bPq\u001b\\\u009b1m\u0000\u202e\u001bc';
  expect(shown(`a${hidden}b\r\nc\rd\u001b[999999999mf`)).toEqual([['a1mb\nc\ndf', '']]);
  expect(shown('<script>&amp;\u001b[31"onload=x;m')).toEqual([['<script>&amp;nload=x;m', '']]);
});

test('what two parts share is whole, wherever the cut is', () => {
  const bytes = Buffer.from('ö\u001b[1;4;36m€\u001b[0m\r\n\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\.');
  const whole = joined(createLogReader().take(bytes));
  expect(whole).toEqual([
    ['ö', ''],
    ['€', 'log-bold log-line log-fg-6'],
    ['\nlink.', ''],
  ]);
  for (let cut = 0; cut < bytes.length; cut += 1) {
    const reader = createLogReader();
    expect(joined([...reader.take(bytes.subarray(0, cut)), ...reader.take(bytes.subarray(cut))])).toEqual(whole);
  }
});

test('a sequence without end is not kept for ever', () => {
  const reader = createLogReader();
  reader.take(Buffer.from(`\u001b]${'x'.repeat(10_000)}`));
  expect(joined(reader.take(Buffer.from('y'))).at(-1)?.[0]).toMatch(/y$/);
});

test('a log is followed on after the server was away, restarted or had too many calls; not after a refusal', () => {
  expect([429, 502, 503, 400, 403, 404].filter(isForNow)).toEqual([429, 502, 503]);
});

const claimedAt = '2031-01-01T00:00:00.000Z';

it('a pending run is under way since it was claimed; one that waits for its attempt, and one that is over, is not', () => {
  expect(underWaySince({ status: 'pending', claimedAt })).toBe(claimedAt);
  expect(underWaySince({ status: 'pending', claimedAt: null })).toBeNull();
  for (const status of ['running', 'succeeded', 'failed', 'cancelled'] as const)
    expect([status, underWaySince({ status, claimedAt })]).toEqual([status, null]);
});
