import { expect, test } from 'vitest';
import { parseScopeShares, shareOf } from '../../../src/core/access/scope.ts';
import { laneInScope, withoutScope } from '../../../src/core/runs/run-lane.ts';
import { readConfig } from '../../../src/config/config.ts';

test('scopes are prefixes, with caps where they have some', () => {
  const [shares, faults] = parseScopeShares('ops.:5000:20000, billing.eu.::7,billing.');
  expect(faults).toEqual([]);
  // The longest first: a name belongs to the first one that it begins with.
  expect(shares).toEqual([
    { prefix: 'billing.eu.', maxSchedules: null, maxOpenRuns: 7 },
    { prefix: 'billing.', maxSchedules: null, maxOpenRuns: null },
    { prefix: 'ops.', maxSchedules: 5000, maxOpenRuns: 20000 },
  ]);
});

test('a name belongs to the longest prefix that it begins with, and else to the rest', () => {
  const [shares] = parseScopeShares('billing.,billing.eu.');
  const prefixOf = (name: string | null) => shareOf(shares, name).prefix;
  expect(['billing.eu.day', 'billing.day', 'billing', 'ops.day', null].map(prefixOf)).toEqual([
    ...['billing.eu.', 'billing.', '', '', ''],
  ]);
});

test('the lane of a run ends with its scope, except that of a queue', () => {
  const [shares] = parseScopeShares('billing.');
  const lane = laneInScope(shares, 'http https://host', 'billing.day');
  expect(lane).toBe('http https://host @billing.');
  expect(laneInScope(shares, 'http https://host', 'ops.day')).toBe('http https://host');
  expect(laneInScope(shares, 'http https://host', null)).toBe('http https://host');
  expect(laneInScope(shares, 'pull reports', 'billing.day')).toBe('pull reports');
  expect([lane, 'http https://host'].map(withoutScope)).toEqual(['http https://host', 'http https://host']);
});

test.for([
  ['billing.:2', 'scopes have caps, and no weights'],
  ['billing.:2:5000:20000', 'scopes have caps, and no weights'],
  ['billing.:', 'is not prefix or prefix:schedules:runs'],
  [':1:1', 'does not begin with a prefix'],
  ['bil ling', 'does not begin with a prefix'],
  ['.billing', 'does not begin with a prefix'],
  ['b'.repeat(129), 'does not begin with a prefix'],
  ['billing.:0:', 'has a cap'],
  ['billing.:many:', 'has a cap'],
  ['billing.:1.5:', 'has a cap'],
  ['billing.:5:1000000001', 'has a cap'],
  ['billing.,billing.:1:1', 'is named twice'],
  [Array.from({ length: 65 }, (_, index) => `s${index}.`).join(), 'are more than 64'],
  ['billing.,', 'does not begin with a prefix'],
])('%s is refused at the start: %s', ([text = '', fault = '']) => {
  const read = readConfig({ FIRELOCK_SCOPES: text });
  expect('faults' in read && read.faults.join()).toContain(fault);
});

test('without the variable no scope has anything of its own', () => {
  expect(readConfig({})).toMatchObject({ config: { scopeShares: [] } });
});
