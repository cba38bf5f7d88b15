import { expect, test } from 'vitest';
import { EXIT } from '../../../src/cli/exit-codes.ts';
import { readerZone } from '../../../src/cli/surroundings.ts';
import { firelock } from '../cli.ts';

test.each([
  [undefined, 'Europe/Berlin', 'Europe/Berlin'],
  ['Asia/Tokyo', 'Asia/Tokyo', 'Asia/Tokyo'],
  [':Asia/Tokyo', 'Asia/Tokyo', 'Asia/Tokyo'],
  ['EST5EDT', 'America/New_York', 'EST5EDT'],
  ['', 'Etc/Unknown', null],
  ['UTC0', undefined, null],
  [':/etc/localtime', undefined, null],
  ['CET-1CEST,M3.5.0,M10.5.0/3', 'UTC', null],
  ['<+03>-3', '+03:00', null],
  ['GMT+5', '+05:00', null],
  ['Nowhere/City', undefined, null],
  [undefined, undefined, null],
])('TZ=%j on a machine of %j: %j', (tz, ofMachine, zone) => {
  expect(readerZone(tz, ofMachine)).toBe(zone);
});

test('without a zone, an import of a crontab asks for one, and one of CronJobs needs none', async () => {
  const around = { input: '30 2 * * * root /bin/backup\n', zone: null };
  const { code, out, err } = await firelock(['import-crontab', '-', '--system'], around);
  expect([code, out, err]).toEqual([
    EXIT.usage,
    '',
    expect.stringContaining('--timezone: TZ names no zone, so say which one the times are in'),
  ]);
  const given = await firelock(['import-crontab', '-', '--system', '--timezone', 'Asia/Tokyo'], around);
  expect([given.code, given.out]).toEqual([0, expect.stringContaining('timezone: Asia/Tokyo')]);
});
