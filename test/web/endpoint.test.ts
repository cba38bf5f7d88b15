import { describe, expect, it } from 'vitest';
import type {
  AnsweredHttpTarget,
  Connection as AnsweredConnection,
  Schedule,
  WholeRun,
} from '../../clients/typescript/src/generated/types.gen.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import { lateParent } from '../../src/core/runs/parent.ts';
import type { HttpTarget } from '../../src/core/schedules/schedule.ts';
import { beginRequest, prepareTarget } from '../../src/targets/http-request.ts';
import { parseJson, stringifyJson } from '../../web/src/api/json.ts';
import { filledBody } from '../../web/src/pages/run/filled-body.ts';
import { type Draft, EMPTY, bodyOf, draftOf, faultsOf } from '../../web/src/pages/schedule-form/draft.ts';
import { sentOf } from '../../web/src/pages/schedule-form/sample.ts';
import { secretOf } from '../support/signed.ts';
import { targetAt } from '../support/targets.ts';
import { attemptOf } from '../targets/receivers.ts';

const FIRE_AT = Date.UTC(2026, 10, 20, 9);
const RULES = {
  succeed: [409, '2XX', '300'],
  retry: [],
  fail: ['400-404'],
  require: { pointer: '/ok', equals: { a: [1, null] } },
  otherwise: 'fail' as const,
};

/** As the API answers it. */
function stored(target: Partial<AnsweredHttpTarget>): Schedule {
  const schedule = { id: 'nightly', cron: '0 9 * * *', labels: {}, retry: {}, payload: null };
  return {
    ...schedule,
    everySeconds: null,
    at: null,
    after: null,
    exclude: null,
    onExcluded: 'skip',
    every: null,
    pick: null,
    target: { ...targetAt('http://a/'), ...target },
  } as never;
}

const sentTarget = (draft: Draft, base: Schedule | null) =>
  JSON.parse(stringifyJson(bodyOf(draft, base)['target'])) as Record<string, unknown>;

describe('the form', () => {
  it('sends untouched rules and bodies back as they are', () => {
    const body = { template: '{\r\n"a": {{payload}}}', contentType: 'application/x+json' };
    for (const target of [{ body, outcome: RULES }, { outcome: { ...RULES, require: { contains: ' ok' } } }]) {
      const base = stored(target);
      expect(sentTarget(draftOf(base), base)).toEqual(base.target);
    }
    const empty = stored({ outcome: { succeed: [], retry: [], fail: [], require: null, otherwise: null } });
    expect(sentTarget(draftOf(empty), empty)).toEqual(empty.target);
  });

  it('sends what is typed, and keeps of the rules what it has no field for', () => {
    const base = stored({ outcome: { ...RULES, later: 1 } as never });
    const draft = { ...draftOf(base), succeedOn: '409 2xx,nonsense', equals: ' 1.0 ', contentType: ' ' };
    expect(sentTarget(draft, base)['outcome']).toEqual({
      ...{ ...RULES, succeed: [409, '2xx', 'nonsense'], later: 1 },
      require: { pointer: '/ok', equals: 1 },
    });
    expect(stringifyJson(bodyOf(draft, base))).toContain('"equals":1.0');
    const other = { ...draft, required: 'contains' as const, contains: ' x', bodyKind: 'template' as const };
    expect(sentTarget(other, base)).toMatchObject({
      body: { template: '' },
      outcome: { require: { contains: ' x' } },
    });
    expect(sentTarget(EMPTY, null)).toMatchObject({ body: 'envelope', outcome: null });
  });

  it('says at once that a value is no JSON, and only where the value would be sent', () => {
    const paths = (draft: Partial<Draft>) => faultsOf({ ...EMPTY, equals: 'ok', ...draft }).map(({ path }) => path);
    expect(paths({ required: 'pointer' })).toEqual(['/target/outcome/require/equals']);
    expect(paths({ required: 'pointer', equals: ' ' })).toEqual(['/target/outcome/require/equals']);
    expect([paths({}), paths({ required: 'pointer', targetType: 'pull' })]).toEqual([[], []]);
  });
});

const PAYLOAD = '{"title": "a \\"b\\"\\n", "n": 12345678901234567890.10}';
const SENDER = { now: FIRE_AT, userAgent: 'firelock/1', spanId: '0123456789abcdef' };

/** What is really sent to such a target, for the run that the form takes as its sample. */
function reallySent(
  target: Partial<HttpTarget<string>>,
  payload: string | null,
  follows: 'nothing' | 'a run' | 'a late schedule',
) {
  const runId = '019ac0de-0000-7000-8000-000000000001';
  const cause = {
    runId: '019ac0de-0000-7000-8000-000000000000',
    status: 'failed' as const,
    error: { kind: 'http' as const, message: 'the target answered 500', statusCode: 500 },
    result: { statusCode: 500, body: '{"ok":false}' },
  };
  const after = { runName: null, trigger: 'after' as const };
  const parents = {
    nothing: {},
    'a run': { ...after, dependencies: [cause], parent: { ...cause, scheduleId: 'bill', reason: null } },
    'a late schedule': { ...after, parent: lateParent('bill') },
  };
  const attempt = attemptOf({ runId, payload, ...parents[follows] });
  return beginRequest(prepareTarget(targetAt('http://a/x', target), null), attempt, SENDER).finish();
}

function inPairs(texts: readonly string[]): [string, string][] {
  return texts.flatMap((text, at) => (at % 2 === 0 ? [[text, texts[at + 1] ?? '']] : []));
}

describe('what the form shows of a request is what is sent', () => {
  const text = (template: string, contentType = '') => ({
    bodyKind: 'template' as const,
    template,
    contentType,
  });
  const all = '{"a":{{payload/n}},"b":"{{payload/title}}","c":{{payload}},"d":"{{runName}} {{scheduledFor}}"}';
  it.each<[string, Partial<Draft>]>([
    ['the envelope', {}],
    ['the envelope, without a payload', { payload: '' }],
    ['the envelope of a run that follows another', { kind: 'after', afterId: 'bill', afterOn: ['late', 'failed'] }],
    ['the envelope of a run that follows a late schedule', { kind: 'after', afterId: 'bill', afterOn: ['late'] }],
    ['the payload', { bodyKind: 'payload' }],
    ['no payload', { bodyKind: 'payload', payload: '' }],
    ['a text in JSON', text(all)],
    ['a text in JSON of another type', text(all, 'application/x+json')],
    ['a form', text('a={{payload/title}}&b={{payload/n}}', 'application/x-www-form-urlencoded')],
    [
      'plain text of a parent',
      {
        kind: 'after',
        afterId: 'bill',
        afterOn: ['failed'],
        ...text('{{parent/error/message}} {{dependencies}}', 'text/plain'),
      },
    ],
    ['a GET', { method: 'GET', url: 'http://a/x/{{runName}}?at={{scheduledFor}}&n={{attempt}}#there' }],
    [
      'headers, one of which is the type',
      {
        headers: [
          ['X-A', 'b'],
          ['Content-Type', 'text/x'],
          ['', ''],
        ],
      },
    ],
    ['a signature', { secret: secretOf(1) }],
  ])('%s', (_name, changes) => {
    const draft: Draft = { ...EMPTY, id: 'nightly', url: 'http://a/x', payload: PAYLOAD, ...changes };
    const shown = sentOf(draft, null, FIRE_AT);
    const target = JSON.parse(stringifyJson(bodyOf(draft, null)['target'])) as HttpTarget<string>;
    const contentType = { contentType: 'application/json' };
    const body = typeof target.body === 'string' ? target.body : { ...contentType, ...target.body };
    const request = reallySent(
      { ...target, body },
      draft.payload || null,
      draft.kind !== 'after' ? 'nothing' : draft.afterOn.includes('failed') ? 'a run' : 'a late schedule',
    );
    expect([shown.method, shown.url, shown.body]).toEqual([
      request.method,
      request.origin + request.path,
      request.body,
    ]);
    expect(shown.unknown).toBeNull();
    const typed = draft.headers.map(([name]) => name.toLowerCase());
    const headers = inPairs(request.headers);
    const [own, others] = [true, false].map((isOwn) => headers.filter(([name]) => shown.own.includes(name) === isOwn));
    expect(own?.map(([name]) => name)).toEqual(shown.own);
    expect(shown.headers).toEqual(others?.map(([name, value]) => [name, typed.includes(name) ? '***' : value]));
    expect(JSON.stringify(shown)).not.toContain('"b"');
    expect(JSON.stringify(shown)).not.toContain(secretOf(1));
  });
});
describe('what the form shows of a request below a connection is what is sent', () => {
  const headers = { 'X-Team': 'secret-1', 'X-Region': 'secret-3' };
  const auth = { type: 'bearer', token: 'secret-2' } as const;
  it.each<[string, Pick<AnsweredConnection, 'headers' | 'auth'>, string]>([
    ['its headers and its login', { headers, auth }, '/b/{{runName}}?n={{attempt}}'],
    ['nothing but its URL', { headers: {}, auth: null }, ''],
    ['a login', { headers: {}, auth }, '/'],
  ])('%s', (_name, added, url) => {
    const connection = { url: 'https://c/v1', ...added };
    const typed = ['x-team', 'Authorization', 'X-B'].map((name) => [name, 'mine'] as const);
    const draft: Draft = { ...EMPTY, id: 'nightly', connection: 'c', url, headers: typed };
    const shown = sentOf(draft, null, FIRE_AT, connection);
    const target = targetAt(url, { connection: 'c', headers: Object.fromEntries(typed) });
    const runId = '019ac0de-0000-7000-8000-000000000001';
    const request = beginRequest(
      prepareTarget(target, connection as Partial<Connection<string>> as Connection<string>),
      attemptOf({ runId }),
      SENDER,
    ).finish();
    expect(shown.url).toBe(request.origin + request.path);
    const sent = inPairs(request.headers).map(([name]) => name);
    expect(shown.headers.map(([name]) => name)).toEqual(sent.filter((name) => !shown.own.includes(name)));
    expect(JSON.stringify(shown)).not.toMatch(/secret-|mine/);
  });

  it('a connection that cannot be read is named, and a path that leads out of one is shown as it is typed', () => {
    const draft: Draft = { ...EMPTY, connection: ' c ', url: '/../x' };
    const shown = (connection: Parameters<typeof sentOf>[3]) => sentOf(draft, null, FIRE_AT, connection).url;
    expect(shown(null)).toBe('(URL of the connection c)/../x');
    expect(shown({ url: 'https://c/v1', headers: {}, auth: null })).toBe('https://c/v1/../x');
  });
});

it('the faults of templates stand at their fields, and what cannot be filled in is not shown', () => {
  const draft: Draft = { ...EMPTY, url: 'http://a/{{nope}}', headers: [['a/b', '{{secret}}']], payload: '{' };
  const shown = sentOf({ ...draft, bodyKind: 'template', template: '{{runid}}' }, null, FIRE_AT);
  expect(shown.faults.map(({ path }) => path)).toEqual([
    '/target/url',
    '/target/headers/a~1b',
    '/target/body/template',
  ]);
  expect(JSON.stringify(shown)).not.toContain('{{secret}}');
  expect([shown.body, shown.url]).toEqual([null, 'http://a/%7B%7Bnope%7D%7D']);
  const pathsOf = (changes: Partial<Draft>) =>
    sentOf({ ...EMPTY, ...changes }, null, FIRE_AT).faults.map(({ path }) => path);
  expect(pathsOf({ bodyKind: 'template', template: 'x', contentType: 'x' })).toEqual(['/target/body/contentType']);
  expect(pathsOf({ bodyKind: 'template', template: '' })).toEqual([]);
  expect(sentOf(draft, null, FIRE_AT)).toMatchObject({ body: null, unknown: 'The payload is not JSON.' });
  expect(sentOf({ ...draft, method: 'GET' }, null, FIRE_AT)).toMatchObject({ body: null, unknown: null });
});

it('the page of a run fills a text in as it was sent, unless it tells of other runs', () => {
  const run = parseJson(
    `{"id":"r1","name":null,"scheduleId":"a","scheduledFor":"2026-11-20T09:00:00.000Z","trigger":"manual","attempts":3,
     "parentRunId":null,"dependsOn":[],"payload":${PAYLOAD}}`,
  ) as WholeRun;
  const filled = (template: string, more: Partial<WholeRun> = {}) =>
    filledBody({ ...run, ...more }, { template, contentType: 'application/json' });
  expect(filled('[{{attempt}}, {{payload/n}}, "{{runName}}", {{dependencies}}, {{parent/status}}]')).toBe(
    '[3, 12345678901234567890.10, "r1", [], null]',
  );
  expect(filled('[{{attempt}}]', { attempts: 0, trigger: 'after' })).toBe('[1]');
  expect(filled('[{{parent/status}}]', { trigger: 'after' })).toBeNull();
  expect(filled('[{{dependencies}}]', { dependsOn: ['d'] })).toBeNull();
  expect(filled('[{{nope}}]')).toBeNull();
});
