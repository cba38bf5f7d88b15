import { ALERT_KINDS } from '../../../src/core/alerts/alert.ts';
import { ANSWERED_TARGET, TARGET } from '../api.ts';

/** A resource whose things have names: what is put, what is answered, what is refused, and what may name one. */
export interface Thing {
  /** The last part of its list's path. */
  list: string;
  word: string;
  /** Two definitions; the second one says no more than it has to. */
  definitions: readonly [object, object];
  /** What is answered of each, beside its id and `updatedAt`. */
  answers: readonly [object, object];
  /** What is refused, with the paths of all of its faults. */
  faulty: readonly [body: object, paths: readonly string[]][];
  /** What names it: of these kinds, in the order in which a refusal names them. */
  namers: readonly [Namer, ...Namer[]];
}

interface Namer {
  /** As a refusal says it before the ids. */
  kind: string;
  method: 'PUT' | 'POST';
  /** With the id that the namer is to have. */
  path: (id: string) => string;
  body: (named: string, id: string) => object;
}

const WEBHOOK = { type: 'webhook', target: TARGET };
const YEARLY = { cron: '0 0 1 1 *' };
const below = (connection: string) => ({ type: 'http', connection, url: '/' });

const schedule = (of: (named: string) => object): Namer => ({
  kind: 'schedules',
  method: 'PUT',
  path: (id) => `/schedules/${id}`,
  body: (named) => ({ ...YEARLY, target: TARGET, ...of(named) }),
});
const run = (of: (named: string) => object): Namer => ({
  kind: 'open runs',
  method: 'POST',
  path: () => '/runs',
  body: (named, key) => ({ target: TARGET, key, ...of(named) }),
});
const notifier = (of: (named: string) => object): Namer => ({
  kind: 'notifiers',
  method: 'PUT',
  path: (id) => `/notifiers/${id}`,
  body: (named, id) => ({ channel: WEBHOOK, filter: { ids: [id] }, ...of(named) }),
});

export const THINGS: readonly Thing[] = [
  {
    ...{ list: 'calendars', word: 'calendar' },
    definitions: [
      { description: 'of Bavaria', dates: ['2030-01-06', '2030-12-24/2031-01-02'], validUntil: '2031-12-31' },
      { dates: [] },
    ],
    answers: [
      {
        ...{ description: 'of Bavaria', dates: ['2030-01-06', '2030-12-24/2031-01-02'] },
        ...{ validUntil: '2031-12-31', version: 1, nextFiresMoved: true },
      },
      { description: null, dates: [], validUntil: null, version: 2, nextFiresMoved: true },
    ],
    faulty: [
      [
        {
          dates: ['2030-02-30', '2030-01-02/2030-01-01', '1999-12-31', 'Christmas', 5, '2030-01-01'],
          ...{ days: [], description: 5, id: 'other' },
        },
        ['/dates/0', '/dates/1', '/dates/2', '/dates/3', '/dates/4', '/days', '/description', '/id'],
      ],
      [{ dates: Array.from({ length: 2001 }, () => '2030-01-01') }, ['/dates']],
      [{}, ['/dates']],
      ...['2030-02-30', '2030-01-01/2030-01-02', '2101-01-01', 5].map((validUntil): Thing['faulty'][number] => [
        { dates: [], validUntil },
        ['/validUntil'],
      ]),
    ],
    namers: [schedule((named) => ({ exclude: { calendars: [named] } }))],
  },
  {
    ...{ list: 'limits', word: 'limit' },
    definitions: [{ description: 'the warehouse', maxRunning: 3 }, { maxRunning: 10_000 }],
    answers: [
      { description: 'the warehouse', maxRunning: 3, running: 0, waiting: 0, version: 1 },
      { description: null, maxRunning: 10_000, running: 0, waiting: 0, version: 2 },
    ],
    faulty: [
      [{ maxRunning: 0, description: 7, burst: 1, id: 'other' }, ['/burst', '/description', '/id', '/maxRunning']],
      ...[10_001, 1.5, '3', null, undefined].map(
        (maxRunning) => [{ maxRunning }, ['/maxRunning']] as [object, string[]],
      ),
    ],
    namers: [schedule((limit) => ({ limit })), run((limit) => ({ limit }))],
  },
  {
    ...{ list: 'connections', word: 'connection' },
    definitions: [
      { description: 'the CRM', url: 'https://api.example/v1', headers: { 'X-File': { file: 'team/x' } } },
      { url: 'http://localhost:9000/' },
    ],
    answers: [
      {
        ...{
          description: 'the CRM',
          url: 'https://api.example/v1',
          headers: { 'X-File': { file: 'team/x' } },
        },
        ...{ auth: null, tls: null, version: 1 },
      },
      { description: null, url: 'http://localhost:9000/', headers: {}, auth: null, tls: null, version: 2 },
    ],
    faulty: [
      [
        { url: 'ftp://a.example', description: 7, headers: [], token: 'x', id: 'other' },
        ['/description', '/headers', '/id', '/token', '/url'],
      ],
      [{}, ['/url']],
    ],
    namers: [
      schedule((connection) => ({ target: below(connection) })),
      run((connection) => ({ target: below(connection) })),
      notifier((connection) => ({ channel: { type: 'webhook', target: below(connection) } })),
    ],
  },
  {
    ...{ list: 'notifiers', word: 'notifier' },
    definitions: [
      {
        ...{ description: 'Night shift', enabled: false, on: ['late', 'failed'], remindSeconds: null },
        afterFailures: 100,
        filter: { ids: ['billing.*', 'one'], label: ['team:a:b'] },
        channel: WEBHOOK,
      },
      { channel: WEBHOOK },
    ],
    answers: [
      {
        ...{ description: 'Night shift', enabled: false, on: ['late', 'failed'], remindSeconds: null },
        afterFailures: 100,
        filter: { ids: ['billing.*', 'one'], label: ['team:a:b'] },
        channel: { type: 'webhook', target: ANSWERED_TARGET },
        ...{ fallback: null, version: 1 },
      },
      {
        ...{ description: null, enabled: true, filter: { ids: [], label: [] }, remindSeconds: 86_400 },
        on: [...ALERT_KINDS],
        channel: { type: 'webhook', target: ANSWERED_TARGET },
        ...{ afterFailures: 1, fallback: null, version: 2 },
      },
    ],
    faulty: [
      [
        {
          ...{
            on: ['failed', 'failed'],
            remindSeconds: 1,
            afterFailures: 101,
            fallback: '-',
            enabled: 'yes',
            also: 1,
            id: 'other',
          },
          filter: { ids: ['b*c'], label: ['nocolon'], tags: [] },
          channel: { type: 'email', to: ['no address', 'a@b', 'a@b'] },
        },
        [
          ...['/afterFailures', '/also', '/channel/to', '/channel/to/0', '/enabled', '/fallback', '/filter/ids/0'],
          ...['/filter/label/0', '/filter/tags', '/id', '/on', '/remindSeconds'],
        ],
      ],
      [{ on: [], channel: { type: 'sms' } }, ['/channel/type', '/on']],
      [{}, ['/channel']],
    ],
    namers: [notifier((fallback) => ({ fallback }))],
  },
];
