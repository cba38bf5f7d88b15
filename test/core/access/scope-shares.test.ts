import { expect, test } from 'vitest';
import {
  laneInScope,
  parseScopeShares,
  prefixOfLane,
  shareOf,
  withoutScope,
} from '../../../src/core/access/scope-shares.ts';
import { readConfig } from '../../../src/config/config.ts';

test('scopes are prefixes with a weight, and caps where they have some', () => {
  const [shares, faults] = parseScopeShares('ops.:1:5000:20000, billing.eu.:3::7,billing.:2');
  expect(faults).toEqual([]);
  // The longest first: a name belongs to the first one that it begins with.
  expect(shares).toEqual([
    { prefix: 'billing.eu.', weight: 3, maxSchedules: null, maxOpenRuns: 7 },
    { prefix: 'billing.', weight: 2, maxSchedules: null, maxOpenRuns: null },
    { prefix: 'ops.', weight: 1, maxSchedules: 5000, maxOpenRuns: 20000 },
  ]);
});

test('a name belongs to the longest prefix that it begins with, and else to the rest, whose weight is 1', () => {
  const [shares] = parseScopeShares('billing.:2,billing.eu.:3');
  const prefixOf = (name: string | null) => shareOf(shares, name).prefix;
  expect(['billing.eu.day', 'billing.day', 'billing', 'ops.day', null].map(prefixOf)).toEqual([
    ...['billing.eu.', 'billing.', '', '', ''],
  ]);
  expect(shareOf(shares, 'ops.day').weight).toBe(1);
});

test('the lane of a run ends with its scope, except that of a queue', () => {
  const [shares] = parseScopeShares('billing.:2');
  const lane = laneInScope(shares, 'http https://host', 'billing.day');
  expect(lane).toBe('http https://host @billing.');
  expect([prefixOfLane(lane), withoutScope(lane)]).toEqual(['billing.', 'http https://host']);
  expect(laneInScope(shares, 'http https://host', 'ops.day')).toBe('http https://host');
  expect(laneInScope(shares, 'http https://host', null)).toBe('http https://host');
  expect(laneInScope(shares, 'pull reports', 'billing.day')).toBe('pull reports');
  expect([prefixOfLane('http https://host'), withoutScope('http https://host')]).toEqual([
    '',
    'http https://host',
  ]);
});

test.for([
  ['billing.', 'needs a weight'],
  ['billing.:0', 'needs a weight'],
  ['billing.:1001', 'needs a weight'],
  ['billing.:1.5', 'needs a weight'],
  [':1', 'does not begin with a prefix'],
  ['bil ling:1', 'does not begin with a prefix'],
  ['.billing:1', 'does not begin with a prefix'],
  [`${'b'.repeat(129)}:1`, 'does not begin with a prefix'],
  ['billing.:1:0', 'has a cap'],
  ['billing.:1:many', 'has a cap'],
  ['billing.:1:5:1000000001', 'has a cap'],
  ['billing.:1:5:5:5', 'has more than four parts'],
  ['billing.:1,billing.:2', 'stands there twice'],
  [Array.from({ length: 65 }, (_, index) => `s${index}.:1`).join(), 'are more than 64'],
  ['billing.:1,', 'does not begin with a prefix'],
])('%s is refused at the start: %s', ([text = '', fault = '']) => {
  const read = readConfig({ FIRELOCK_SCOPES: text });
  expect('faults' in read && read.faults.join()).toContain(fault);
});

test('without the variable nothing is shared by scope', () => {
  expect(readConfig({})).toMatchObject({ config: { scopeShares: [] } });
});
