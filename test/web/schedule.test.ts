import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { parseJson, stringifyJson } from '../../web/src/api/json.ts';
import type { ExplainedDay, Occurrence, Schedule } from '../../clients/typescript/src/generated/types.gen.ts';
import { bucketEdges, dayEdges, periodAt, viewFor } from '../../web/src/pages/schedule/why/period.ts';
import {
  type Outcome,
  areWithinAMinute,
  countsText,
  fold,
  withOutcome,
} from '../../web/src/pages/schedule/why/outcome.ts';
import { curlText, shellQuoted } from '../../web/src/pages/schedule-form/curl.ts';
import { bodyOf, draftOf, EMPTY, faultsOf, rebase } from '../../web/src/pages/schedule-form/draft.ts';
import { differencesOf } from '../../web/src/parts/differences/difference.ts';
import { clockText, MY_ZONE, oneZone, zoneChoice } from '../../web/src/state/zone.ts';
import { instantOf, localText, startOfDay, startOfMonth, weekdayOf } from '../../web/src/state/local-time.ts';
import { callPath, pagePath } from '../../web/src/state/schedule-paths.ts';
import {
  monthName,
  notesOf,
  timesOf,
  weeksOf,
  within,
  withinMonth,
  wordsOf,
} from '../../web/src/parts/month/month-days.ts';

const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());

it('a local time is the first moment at which clocks show it, or the first one after a gap', () => {
  expect(iso(instantOf('2026-07-01T09:00', 'Europe/Berlin'))).toBe('2026-07-01T07:00:00.000Z');
  expect(iso(instantOf('2026-10-25T02:30:00', 'Europe/Berlin'))).toBe('2026-10-25T00:30:00.000Z');
  expect(iso(instantOf('2026-03-29T02:30', 'Europe/Berlin'))).toBe('2026-03-29T01:00:00.000Z');
  expect(iso(instantOf('2026-11-22T09:00', 'Asia/Kolkata'))).toBe('2026-11-22T03:30:00.000Z');
  expect(instantOf('', 'UTC')).toBeNull();
  expect(localText('2026-11-22T03:30:00.500Z', 'Asia/Kolkata')).toBe('2026-11-22T09:00:00');
  // Beirut's clocks go forward at midnight: the day begins at one.
  expect(iso(startOfDay('2026-03-29', 'Asia/Beirut'))).toBe('2026-03-28T22:00:00.000Z');
  expect([startOfMonth('2026-12-31', 1), weekdayOf('2026-11-23')]).toEqual(['2027-01-01', 0]);
});

it('a day and a month are those of the zone, whatever its clocks do in them', () => {
  const at = Date.parse('2026-10-25T12:00:00Z');
  const day = periodAt('day', at, 'Europe/Berlin');
  expect((day.to - day.from) / 3_600_000).toBe(25);
  expect(bucketEdges(day)).toHaveLength(51);
  const month = periodAt('month', at, 'Europe/Berlin');
  expect([iso(month.from), iso(month.to)]).toEqual(['2026-09-30T22:00:00.000Z', '2026-10-31T23:00:00.000Z']);
  expect(dayEdges(month, 'Europe/Berlin')).toHaveLength(32);
  expect([null, 1_000, 60_000, 86_400_000].map(viewFor)).toEqual(['day', 'hour', 'day', 'month']);
});

it('a column has one zone: that of its schedules where they share one, else that of the reader, unless one is chosen', () => {
  expect(oneZone(['Asia/Tokyo', 'Asia/Tokyo'])).toBe('Asia/Tokyo');
  expect([oneZone([null, undefined]), oneZone([])]).toEqual(['UTC', 'UTC']);
  expect(oneZone(['Asia/Tokyo', 'Europe/Berlin', null])).toBe(MY_ZONE);
  zoneChoice.value = 'utc';
  expect(oneZone(['Asia/Tokyo'])).toBe('UTC');
  zoneChoice.value = 'schedule';
});

it('fires closer than a minute are told with their seconds, and others without', () => {
  const shown = (everyMs: number) => {
    const buckets = fold([], [0, everyMs, 2 * everyMs]);
    return buckets.map(({ from }) => clockText(from, 'Asia/Tokyo', areWithinAMinute(buckets)));
  };
  expect(shown(10_000)).toEqual(['09:00:00', '09:00:10']);
  expect(shown(60_000)).toEqual(['09:00', '09:01']);
});

it('many occurrences fold into buckets that show the worst of each, and count all', () => {
  const occurrence = (fireAt: number, state: Occurrence['state'], runId?: string): Occurrence => ({
    ...{ fireAt: new Date(fireAt).toISOString(), state, version: 1 },
    ...(runId !== undefined && { runId }),
  });
  const statuses = new Map([['b', 'failed' as const]]);
  const told = [
    occurrence(1_000, 'fired', 'old'),
    occurrence(61_000, 'fired', 'a'),
    occurrence(62_000, 'fired', 'b'),
    occurrence(179_000, 'paused'),
    occurrence(999_000, 'upcoming'),
  ].map((one) => withOutcome(one, { statuses, knownFrom: 60_000 }));
  const buckets = fold(told, [0, 60_000, 120_000, 180_000, 240_000]);
  expect(buckets.map(({ worst }) => worst)).toEqual<(Outcome | null)[]>(['fired', 'failed', 'paused', null]);
  expect(buckets.map(({ counts }) => countsText(counts))).toEqual([
    '1 fired',
    '1 failed, 1 succeeded',
    '1 paused',
    'no fire is due',
  ]);
});

const STORED = parseJson(
  '{"id":"a","description":null,"cron":["0 9 * * *"],"everySeconds":null,"at":null,"after":null,"timezone":"Europe/Berlin",' +
    '"exclude":{"dates":["2026-12-24"],"calendars":["holidays"],"weekdays":["sun"]},"onExcluded":"skip",' +
    '"every":{"n":2,"unit":"week","from":"2026-01-05"},"pick":{"of":"month","nth":[1,-1]},"startAt":null,"endAt":null,"catchUp":"all","catchUpLimit":7,' +
    '"graceSeconds":60,"overlap":"skip","jitterSeconds":0,"enabled":false,"pauseReason":"x","pauseUntil":null,' +
    '"pauseAfterFailures":3,"successWithinSeconds":null,"expect":{"startWithinSeconds":60,"finishWithinSeconds":null,' +
    '"atLeastSeconds":5,"result":[{"pointer":"/rows","min":1,"equals":{"a":null}}]},' +
    '"target":{"type":"http","connection":null,"url":"http://a/","method":"POST",' +
    '"headers":{"x":"***"},"body":"envelope","outcome":null,"secret":null,"lookup":{"url":"http://a/l","method":"HEAD","headers":{}},"cancel":null},' +
    '"payload":{"n": 12345678901234567890.10},"retry":{"maxAttempts":5,"minBackoffSeconds":0.5,"maxBackoffSeconds":60},' +
    '"timeoutSeconds":30,"completion":"response","completionTimeoutSeconds":3600,"delivery":"atLeastOnce",' +
    '"priority":"high","limit":null,"expiresAfterSeconds":null,"labels":{"team":"x"},"status":"paused","version":4}',
) as Schedule;

it('an untouched form sends back what it was made from, and keeps what it has no field for', () => {
  const sent = bodyOf(draftOf(STORED), STORED);
  const others = { everySeconds: null, at: null, after: null };
  expect(differencesOf(STORED, { ...sent, ...others, cron: ['0 9 * * *'] })).toEqual([]);
  expect(stringifyJson(sent)).toContain('"payload":{"n": 12345678901234567890.10}');
  expect(sent).toMatchObject({ enabled: false, pauseReason: 'x', cron: '0 9 * * *' });
  expect(sent).not.toHaveProperty('version');
  const renamed = { ...draftOf(STORED), lookupUrl: 'http://a/m', payload: '[1.0]' };
  expect(bodyOf(renamed, STORED)['target']).toMatchObject({ lookup: { url: 'http://a/m', method: 'HEAD' } });
  expect(stringifyJson(bodyOf(renamed, STORED)['payload'])).toBe('[1.0]');
});

it('rules of days are typed as texts, and left out of a schedule without an expression', () => {
  const draft = {
    ...draftOf(STORED),
    everyN: '',
    pickNth: '-1 2',
    excludeWeekdays: ['sun', 'mon'],
    onExcluded: 'next',
  };
  expect(bodyOf(draft, STORED)).toMatchObject({
    ...{ exclude: { weekdays: ['mon', 'sun'] }, onExcluded: 'next', every: null },
    pick: { of: 'month', nth: [-1, 2] },
  });
  const often = bodyOf({ ...draftOf(STORED), kind: 'everySeconds', everySeconds: '60' }, STORED);
  expect(often).toMatchObject({
    every: null,
    pick: null,
    onExcluded: 'skip',
    exclude: { weekdays: ['sun'] },
  });
});

it('an untouched secret is kept, and two are a list', () => {
  const http = STORED.target as Extract<typeof STORED.target, { type: 'http' }>;
  const signed = { ...STORED, target: { ...http, secret: '***' } };
  const sent = (secret: string) => bodyOf({ ...draftOf(signed), secret }, signed)['target'];
  expect(bodyOf(draftOf(signed), signed)['target']).toMatchObject({ secret: '***', headers: { x: '***' } });
  expect(sent('***\nwhsec_new')).toMatchObject({ secret: ['***', 'whsec_new'] });
  expect(sent(' ')).toMatchObject({ secret: null });
  const twice = { ...STORED, target: { ...http, secret: ['***', '***'] } };
  expect(bodyOf(draftOf(twice), twice)['target']).toMatchObject({ secret: ['***', '***'] });
});

it('input goes unchanged to the daemon, which names its faults; input that cannot be sent is refused at once', () => {
  const typed = { ...EMPTY, id: 'b', kind: 'everySeconds' as const, everySeconds: 'often' };
  const draft = {
    ...typed,
    policies: { graceSeconds: '', timeoutSeconds: '1e3', limit: '', 'expect/finishWithinSeconds': '' },
  };
  const sent = JSON.parse(stringifyJson(bodyOf(draft, null))) as Record<string, unknown>;
  expect(sent).toMatchObject({
    everySeconds: 'often',
    timeoutSeconds: 1000,
    limit: null,
    expect: null,
    payload: null,
  });
  expect(sent).not.toHaveProperty('graceSeconds');
  expect(sent).not.toHaveProperty('cron');
  const labels = [['a', '1'] as const, ['a', '2'] as const];
  expect(faultsOf({ ...EMPTY, payload: '{', labels }).map(({ path }) => path)).toEqual(['/payload', '/labels']);
});

it('what is expected of a result is typed as JSON, and what is none goes to the daemon', () => {
  const sent = (text: string) =>
    stringifyJson(bodyOf({ ...EMPTY, policies: { 'expect/result': text } }, null)['expect']);
  expect(draftOf(STORED).policies['expect/result']).toBe('[{"pointer":"/rows","min":1,"equals":{"a":null}}]');
  expect(sent(' [{"pointer": "", "equals": 1.0}] ')).toBe('{"result":[{"pointer": "", "equals": 1.0}]}');
  expect(sent('rows > 1')).toBe('{"result":"rows > 1"}');
});

it('my changes are merged with those of another user, field by field', () => {
  const base = draftOf(STORED);
  const mine = { ...base, description: 'mine', policies: { ...base.policies, overlap: 'queue' } };
  const theirs = { ...base, timezone: 'UTC', policies: { ...base.policies, graceSeconds: '1' } };
  expect(rebase(mine, base, theirs)).toMatchObject({
    ...{ description: 'mine', timezone: 'UTC' },
    policies: { overlap: 'queue', graceSeconds: '1' },
  });
});

it('definitions differ field by field, and payloads by their text', () => {
  const before = parseJson('{"id":"a","labels":{"a/b":"1"},"payload":{"n":1.0},"cron":["x"],"version":1}') as object;
  const after = parseJson('{"id":"a","labels":{},"payload":{"n":1},"cron":"x","version":2}') as object;
  expect(differencesOf(before, after)).toEqual([
    { path: '/cron', before: '["x"]', after: '"x"' },
    { path: '/labels/a~1b', before: '"1"', after: null },
    { path: '/payload', before: '{"n":1.0}', after: '{"n":1}' },
  ]);
});

it('a shell reads back the copied command, whatever is in it', () => {
  const hostile = `it's "$HOME" \`id\` \\ \n é ‮ {"n":12345678901234567890.10}`;
  const read = execFileSync('sh', ['-c', `printf %s ${shellQuoted(hostile)}`], { encoding: 'utf8' });
  expect(read).toBe(hostile);
  const body = {
    description: hostile,
    payload: (parseJson('{"payload":1.0}') as { payload: unknown }).payload,
  };
  const command = curlText({ url: 'http://a/b', body, headers: { 'if-match': '"3"' }, needsToken: true });
  const shown = execFileSync('sh', ['-c', command.replace(/^curl/, 'printf "%s\\n"')], {
    encoding: 'utf8',
    env: { ...process.env, FIRELOCK_TOKEN: 'secret' },
  });
  expect(shown).toContain('authorization: Bearer secret\n');
  expect(shown).toContain('if-match: "3"\n');
  expect(JSON.parse(shown.slice(shown.indexOf('{\n')))).toEqual({ description: hostile, payload: 1 });
  expect(command).toContain('"payload": 1.0');
});

it('a schedule that is called `new` has a page beside the form for new ones', () => {
  expect(['new', 'newer', 'a.b'].map((id) => pagePath(id))).toEqual([
    '/schedules/%6Eew',
    '/schedules/newer',
    '/schedules/a.b',
  ]);
  expect([pagePath('new', '/edit'), callPath('new', '/runs')]).toEqual(['/schedules/new/edit', '/schedules/new/runs']);
});

const day = (date: string, given: Partial<ExplainedDay> = {}): ExplainedDay => ({
  ...{ date, verdict: 'notSelected', fires: [] },
  ...given,
});
const fire = (fireAt: string, local = fireAt.replace('Z', '+00:00')) => ({ fireAt, local });
const monthOf = (first: string, length: number) =>
  Array.from({ length }, (_, index) => day(`${first}-${String(index + 1).padStart(2, '0')}`));
const shape = (days: ExplainedDay[]) =>
  weeksOf(days).map((week) => week.map((one) => (one === null ? '  ' : one.date.slice(8))).join(' '));

it('a month is weeks from Monday to Sunday, and days of other months are left empty', () => {
  expect(shape(monthOf('2026-12', 31))).toEqual([
    ...['   01 02 03 04 05 06', '07 08 09 10 11 12 13', '14 15 16 17 18 19 20', '21 22 23 24 25 26 27'],
    '28 29 30 31         ',
  ]);
  // It begins on a Monday and ends on a Sunday.
  expect(shape(monthOf('2027-02', 28))).toHaveLength(4);
  expect(shape(monthOf('2026-03', 31))[5]).toBe('30 31               ');
  expect(weeksOf([])).toEqual([]);
});

it('a cell says when its day fires, in the zone of the schedule', () => {
  const fires = [
    fire('2026-12-28T03:30:00.000Z', '2026-12-28T09:00:00.000+05:30'),
    fire('2026-12-28T03:30:30.000Z', '2026-12-28T09:00:30.000+05:30'),
  ];
  expect(timesOf(day('2026-12-28', { verdict: 'fires', fires }))).toEqual(['09:00', '09:00:30']);
  expect(wordsOf(day('2026-12-28', { verdict: 'fires', fires }))).toEqual([]);
});

it('a cell says why its day does not fire, where its fires go, and where they come from', () => {
  expect(wordsOf(day('2026-12-28', { verdict: 'fires', movedFrom: ['2026-12-25', '2026-12-26'] }))).toEqual([
    'from 25, 26',
  ]);
  expect(wordsOf(day('2026-12-25', { verdict: 'moved', movedTo: '2026-12-28' }))).toEqual(['moved to 28']);
  expect(wordsOf(day('2026-12-31', { verdict: 'moved', movedTo: '2027-01-04' }))).toEqual(['moved to 01-04']);
  expect(wordsOf(day('2026-12-01', { verdict: 'notPicked' }))).toEqual(['not picked']);
});

it('what excludes days is said once for all of them', () => {
  const [weekend, holiday] = [{ reason: 'weekday sat' }, { reason: 'calendar bank' }];
  const days = [
    day('2026-12-05', { verdict: 'excluded', ...weekend }),
    day('2026-12-12', { verdict: 'excluded', ...weekend }),
    day('2026-12-25', { verdict: 'moved', ...holiday, movedTo: '2026-12-28' }),
    day('2026-12-26', { verdict: 'notPicked' }),
  ];
  expect(notesOf(days)).toEqual([
    '5, 12: Excluded by weekday sat.',
    '25: Excluded by calendar bank, and moved to 2026-12-28.',
  ]);
});

it('fires before the first moment of the schedule, and from its last one on, are left out', () => {
  const fires = [fire('2026-12-10T08:00:00.000Z'), fire('2026-12-10T20:00:00.000Z')];
  const ofDay = day('2026-12-10', { verdict: 'fires', fires });
  const left = (from: string, end: string) => within([ofDay], from, end).map((one) => [one.verdict, one.fires.length]);
  expect(left('', '')).toEqual([['fires', 2]]);
  expect(left('2026-12-10T08:00:00.000Z', '2026-12-10T20:00:00.000Z')).toEqual([['fires', 1]]);
  expect(left('2026-12-11T00:00:00.000Z', '')).toEqual([['outside', 0]]);
  // Of its later fires, which are not listed, some may lie within.
  expect(within([{ ...ofDay, more: true }], '2026-12-10T21:00:00.000Z', '')[0]?.verdict).toBe('fires');
});

it('a month has a name, and is asked for by a moment that lies in it in every zone', () => {
  expect([monthName('2026-12-01'), withinMonth('2026-12-01')]).toEqual(['December 2026', '2026-12-15T12:00:00Z']);
});
