import { expect, test } from 'vitest';
import { firelock } from '../cli.ts';

const translate = (expression: string, from: string, ...args: string[]) =>
  firelock(['translate', expression, '--from', from, ...args]);

test('an expression of another system is printed as fields of a schedule, with what to know about them', async () => {
  const { code, json, err } = await translate('0 20 6 ? * 3#2', 'quartz', '--timezone', 'Europe/Berlin');
  expect([code, json(), err]).toEqual([0, { cron: '20 6 * * TUE#2', timezone: 'Europe/Berlin' }, '']);
  const rate = await translate('rate(7 minutes)', 'eventbridge');
  expect([rate.json(), rate.err]).toEqual([
    { everySeconds: 420 },
    'counted from the creation of the schedule, unless startAt says from when\n',
  ]);
  expect((await translate('weekly', 'systemd')).json()).toEqual({ cron: '0 0 * * MON' });
  const lines = await translate('TZ=Asia/Tokyo\nH 6 * * *\nH 18 * * *', 'jenkins');
  expect(lines.json()).toEqual({ cron: ['H 6 * * *', 'H 18 * * *'], timezone: 'Asia/Tokyo' });
  expect(lines.err).toContain('H is picked by firelock');
});

test.each([
  ['0 20 6 L-3W * ?', 'quartz', 'day of month “L-3W”: no value of Quartz'],
  ['20 6 31 2 *', 'nomad', 'it never runs'],
  ['FREQ=DAILY;BYHOUR=6;BYMINUTE=0;COUNT=3', 'rrule', 'COUNT counts from DTSTART'],
  ['DTSTART:20310304T062000Z\nRRULE:FREQ=WEEKLY;BYDAY=WE;COUNT=3', 'rrule', 'no fire of its rule'],
  ['DTSTART:20310304T062000Z\nRRULE:FREQ=DAILY;COUNT=20000', 'rrule', '10000 at most'],
  ['0 30 6 * * *', 'quartz', 'if it is Spring’s, its six fields mean the same here'],
  ['at(2131-05-06T07:08:09)', 'eventbridge', 'firelock refuses at: must lie between 2000 and 2100'],
])('%s of %s ends with exit code 1 and the reason', async (expression, from, reason) => {
  const { code, out, err } = await translate(expression, from);
  expect([code, out, err]).toEqual([1, '', expect.stringContaining(reason)]);
});

test('an unknown system or zone is a mistake in the call', async () => {
  const none = await translate('@daily', 'cronicle');
  const zone = await translate('weekly', 'systemd', '--timezone', 'Mars/Olympus');
  for (const { code, out } of [none, zone]) expect([code, out]).toEqual([64, '']);
});
