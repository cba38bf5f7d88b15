import { expect, test } from 'vitest';
import { type SteadyFires, busySeconds } from '../../bench/cells/steady-fires.ts';
import { parseCores } from '../../bench/cells/cell.ts';
import type { Sustained } from '../../bench/cells/sustained.ts';
import {
  disturbedVerdicts,
  herdTable,
  sideBySideVerdicts,
  sustainedTable,
  sustainedVerdicts,
  verdictLine,
} from '../../bench/cells/verdicts.ts';

test('cores are read as Linux lists them', () => {
  expect(parseCores('0')).toEqual([0]);
  expect(parseCores('0,1')).toEqual([0, 1]);
  expect(parseCores('0-2,5')).toEqual([0, 1, 2, 5]);
  for (const wrong of ['', 'a', '0,', '-1', '0 1']) expect(() => parseCores(wrong)).toThrow(/no list of cores/);
});

test('the work on a core is that of its processes, and core 1 is not core 10', () => {
  const stat = [
    'cpu  900 900 900 900 900 900 900 900 0 0',
    'cpu0 100 20 30 5000 7 8 9 10 0 0',
    'cpu10 900 900 900 0 0 0 0 0 0 0',
    'cpu1 200 0 50 5000 7 8 9 10 0 0',
  ].join('\n');
  expect(busySeconds(stat, [0])).toBe(1.5);
  expect(busySeconds(stat, [0, 1])).toBe(4);
});

test('the tables have a line for each set of cores, with the medians of its rounds', () => {
  const results = [
    sustained([0], 3_000, 300),
    sustained([0, 1], 6_000, 500),
    sustained([0], 4_000, 400),
    sustained([0, 1], 7_000, 900),
    sustained([0], 5_000, 900),
    sustained([0, 1], 7_000, 600),
  ];
  expect(sustainedTable(results).rows).toEqual([
    ['0', '1', '4,000', '4,000', '100', '400', '60', '90', '40', '6,667', '2 %'],
    ['0,1', '2', '7,000', '3,500', '100', '600', '60', '90', '40', '6,667', '2 %'],
  ]);
  expect(herdTable(results).rows).toEqual([
    ['0', '5,000', '700', '1,900'],
    ['0,1', '5,000', '700', '1,900'],
  ]);
  expect(sustainedVerdicts(results).map(verdictLine)).toEqual([
    'PASS  p99 lateness at 4,000 fires/s on core 0: 400 ms (at most 1,000 ms)',
    'PASS  p99 lateness at 7,000 fires/s on core 0,1: 600 ms (at most 1,000 ms)',
  ]);
});

test('no rate that is sustained is no capacity', () => {
  const results = [{ ...sustained([0], 0, 0), best: null }];
  expect(sustainedTable(results).rows[0]?.slice(0, 4)).toEqual(['0', '1', '0', '0']);
  expect(sustainedVerdicts(results).map(({ met }) => met)).toEqual([false]);
});

test('two cells must do 1.9 times what one alone does, in a herd and sustained', () => {
  const verdictsOf = (together: [number, number], share: number) =>
    sideBySideVerdicts({
      cores: [0, 1],
      rounds: [{ alone: [4_900, 5_100], together }],
      sustained: { alone: 4_000, share },
    });
  const good = verdictsOf([4_700, 4_800], 0.95);
  expect(good.map(({ value, met }) => [value, met])).toEqual([
    [1.9, true],
    [1.9, true],
  ]);
  const bad = verdictsOf([4_700, 4_700], 0.9);
  expect(bad.map(({ met }) => met)).toEqual([false, false]);
  expect(bad.map(verdictLine)).toEqual([
    'FAIL  fires/s of two cells that have a herd each, of those of one alone: 1.88 × (at least 1.9 ×)',
    'FAIL  fires/s that two cells sustain, of the 4,000 of one alone: 1.8 × (at least 1.9 ×)',
  ]);
});

test('what happens in one cell may add a tenth to the p99 of the other, or five milliseconds', () => {
  const metOf = (quiet: number, beside: number) =>
    disturbedVerdicts([{ quiet: steady(quiet), beside: steady(beside), herdMissing: 0 }])[0]?.met;
  expect(metOf(200, 220)).toBe(true);
  expect(metOf(200, 221)).toBe(false);
  expect(metOf(20, 25)).toBe(true);
  expect(metOf(20, 26)).toBe(false);
});

test('a fire that is missed, or twice, or never comes from the herd fails', () => {
  const quiet = steady(100);
  const metOf = (beside: Partial<SteadyFires>, herdMissing: number) =>
    disturbedVerdicts([{ quiet, beside: { ...quiet, ...beside }, herdMissing }]).map(({ met }) => met);
  expect(metOf({}, 0)).toEqual([true, true, true]);
  expect(metOf({ missed: 1 }, 0)).toEqual([true, false, true]);
  expect(metOf({ repeated: 1 }, 0)).toEqual([true, false, true]);
  expect(metOf({}, 1)).toEqual([true, true, false]);
});

function steady(p99: number, count = 500): SteadyFires {
  return {
    count,
    latenessMs: { p50: 100, p99, max: p99 },
    lastSecondP99Ms: p99,
    ...{ missed: 0, repeated: 0 },
    cpuSeconds: { node: 0.09, postgres: 0.06 },
    targetCpuSeconds: 0.04,
    othersShare: 0.02,
    ...{ settled: true, isSustained: true },
  };
}

function sustained(cores: number[], count: number, p99: number): Sustained {
  return {
    cores,
    instances: cores.length,
    best: steady(p99, count),
    herd: {
      seconds: 2,
      firesPerSecond: 5_000,
      latenessMs: { p50: 700, p99: 1_900 },
      cpuSeconds: { node: 0.1, postgres: 0.1 },
      armSeconds: 9,
      residentMegabytes: 300,
    },
  };
}
