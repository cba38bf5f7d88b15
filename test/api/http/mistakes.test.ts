import { describe, expect, test } from 'vitest';
import { type Answer, SCHEDULE, TARGET, faultPaths, sharedApi, errorsOf } from '../api.ts';
import { checkPreconditions } from '../../../src/api/http/request-checks.ts';
import { toProblem } from '../../../src/api/http/problem.ts';
import { changeOrRefuse } from '../../../src/api/schedules/writes.ts';
import type { ApiDeps } from '../../../src/api/deps.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { createMigratedDatabase } from '../../support/postgres/migrated-database.ts';

const api = sharedApi();

const put = (body: unknown) => api.call('PUT', '/api/v1/schedules/wrong', body);

describe('the message about a mistake', () => {
  test.each<[object, string]>([
    [{ cron: null, everySeconds: 1.5 }, '/everySeconds must be a whole number'],
    [{ cron: null, everySeconds: '7m' }, '/everySeconds must be a number of seconds: write 420'],
    [{ cron: null, everySeconds: 'soon' }, '/everySeconds must be a number'],
    [{ cron: 'rate(7 minutes)' }, '/cron column 1: “rate(7 minutes)” is EventBridge’s; write everySeconds: 420'],
    [{ cron: null, everySeconds: 1e28 }, '/everySeconds must be at most 31622400'],
    [{ cron: null, everySeconds: -1e28 }, '/everySeconds must be at least 1'],
    [{ jitterSeconds: 86_401 }, '/jitterSeconds must be at most 86400'],
    [{ retry: { maxAttempts: 1e20 } }, '/retry/maxAttempts must be at most 100'],
    [{ labels: [] }, '/labels must be an object'],
    [{ retry: 5 }, '/retry must be an object'],
    [{ cron: null, after: { scheduleId: '*', on: [] } }, '/after/on must be at least 1 item'],
    [{ endAt: '2026-02-30T00:00:00Z' }, '/endAt names a day that does not exist: 2026-02-30'],
    [{ endAt: '2026-13-01T00:00:00Z' }, '/endAt names a day that does not exist: 2026-13-01'],
    [{ endAt: '2101-01-01T00:00:00Z' }, '/endAt must lie between 2000 and 2100'],
    [
      { cron: null, after: { scheduleId: 'a/b' } },
      '/after/scheduleId must be 1 to 128 letters (A-Z, a-z), digits, dots, dashes or underscores, and begin with a letter or digit; or be the beginning of ids and a *',
    ],
  ])('%j', async (fields, detail) => {
    const answer = await put({ ...SCHEDULE, ...fields });
    expect([answer.status, answer.body['detail']]).toEqual([400, detail]);
  });

  test('in a run id, and in a schedule id, contains no regular expression', async () => {
    const run = await api.call('GET', '/api/v1/runs/5');
    expect([run.status, run.body['detail']]).toEqual([400, 'id must be a UUID']);
    const schedule = await api.call('GET', '/api/v1/schedules/-x');
    expect(schedule.body['detail']).toMatch(/^id must be 1 to 128 letters .* begin with a letter or digit$/);
  });

  test('in the text of a name does not hide a fault of its value', async () => {
    const body = `${JSON.stringify({ ...SCHEDULE, description: 5 }).slice(0, -1)},"labels":{"a\\u0000":"\\ud800"}}`;
    expect(errorsOf(await put(body))).toEqual([
      { path: '/labels/a\0', message: 'has NUL or half of a surrogate pair in its name' },
      { path: '/labels/a\0', message: 'has NUL or half of a surrogate pair in its text' },
      { path: '/description', message: 'must be a string' },
    ]);
  });

  test.each(['/api/v1/schedules/', '/api/v1/runs/', '/api/v1/schedules//runs'])(
    'in %s says that there is nothing, not that an id is wrong',
    async (path) => {
      const answer = await api.call('GET', path);
      expect([answer.status, answer.body['detail']]).toEqual([404, 'there is nothing at this path']);
    },
  );

  test('in JSON names its position, also beyond a payload and in the middle of a batch', async () => {
    const small = await put('{"payload":[1,2,3],"cron":}');
    expect(small.body['detail']).toBe(`the body is not JSON: Unexpected token '}', ..."3],"cron":}" is not valid JSON`);
    const item = JSON.stringify({ id: 'a', ...SCHEDULE, payload: 'x'.repeat(1000) });
    const large = `{"items":[${`${item},`.repeat(500)}{"id":x}]}`;
    const answer = await api.call('POST', '/api/v1/schedules/batch', large);
    expect([answer.status, answer.body['detail']]).toEqual([
      400,
      `the body is not JSON: /items/500 Unexpected token 'x', "{"id":x}" is not valid JSON`,
    ]);
  });
});

test.each(['2026-11-20T10:00:00+02', '2026-11-20T10:00:00+0200', '2026-11-20T10:00:00+02:00'])(
  '%s has an offset of two hours, in a body and in a query',
  async (instant) => {
    const query = await api.call('GET', `/api/v1/runs?from=${instant}`);
    expect(query.status).toBe(200);
    const preview = await api.call('POST', '/api/v1/preview', { everySeconds: 60, from: instant, count: 1 });
    expect(preview.body['items']).toMatchObject([{ fireAt: '2026-11-20T08:01:00.000Z' }]);
  },
);

describe('a preview', () => {
  const preview = (body: object) => api.call('POST', '/api/v1/preview', { count: 1, ...body });

  test.each([{ cron: 'H H * * *' }, { cron: '? 2 * * *' }, { cron: 'H/15 * * * *', id: null }])(
    'says of %j that its times belong to no schedule',
    async (body) => {
      const answer = await preview(body);
      expect([answer.status, answer.body['assumes']]).toEqual([200, expect.stringContaining('picked by the id')]);
    },
  );

  test.each([{ cron: 'H H * * *', id: 'mine' }, { cron: '0 2 * MAR THU' }, { everySeconds: 60 }])(
    'assumes nothing of %j',
    async (body) => {
      const answer = await preview(body);
      expect([answer.status, answer.body['assumes']]).toEqual([200, undefined]);
    },
  );
});

describe('a cursor', () => {
  const next = (answer: Answer) => {
    const cursor = answer.body['nextCursor'] as unknown as string;
    expect(cursor).toBeTypeOf('string');
    return cursor;
  };
  const period = 'from=2090-01-01T00:00:00Z&to=2090-01-02T00:00:00Z';
  const lists = [
    '/api/v1/schedules?',
    '/api/v1/runs?',
    ...['a', 'b'].flatMap((id) => [
      `/api/v1/schedules/${id}/runs?`,
      `/api/v1/schedules/${id}/versions?`,
      `/api/v1/schedules/${id}/occurrences?${period}`,
    ]),
  ];

  test('is accepted by the list that gave it, and by no other', async () => {
    for (const id of ['a', 'b']) {
      for (const description of ['x', 'y'])
        await api.call('PUT', `/api/v1/schedules/${id}`, { cron: '0 * * * *', target: TARGET, description });
      for (let fire = 0; fire < 2; fire += 1) await api.call('POST', `/api/v1/schedules/${id}/fire`);
    }
    const refused: string[] = [];
    for (const giver of lists) {
      const cursor = next(await api.call('GET', `${giver}&limit=1`));
      for (const taker of lists) {
        const answer = await api.call('GET', `${taker}&limit=1&cursor=${cursor}`);
        if (taker === giver) expect(answer.status).toBe(200);
        else {
          expect([answer.status, faultPaths(answer)]).toEqual([400, ['cursor']]);
          refused.push(answer.body['detail'] as unknown as string);
        }
      }
    }
    expect(new Set(refused)).toEqual(new Set(['cursor is not a nextCursor of this list']));
    expect(refused).toHaveLength(lists.length * (lists.length - 1));
  });
});

test('a weak tag matches nothing, and the answer says that and not that something has changed', () => {
  const check = (tags: string[]) => () => checkPreconditions('schedule nightly', { 'if-match': tags }, { version: 3 });
  expect(check(['"3"'])).not.toThrow();
  expect(check(['W/"3"', '"3"'])).not.toThrow();
  expect(check(['W/"3"'])).toThrow('If-Match takes no weak tag, and W/"3" is one: send "3".');
  expect(check(['W/"2"'])).toThrow('schedule nightly has changed: its ETag is "3"');
});

const thrown = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test.each([new RangeError('Maximum call stack size exceeded'), new TypeError('x is not a function')])(
  'a mistake of the program is 500, and keeps its cause for the log: %s',
  (mistake) => {
    expect(toProblem(mistake)).toMatchObject({ status: 500, cause: mistake });
    expect(toProblem(new Error('wrapped', { cause: mistake })).status).toBe(500);
    expect(toProblem(mistake).message).not.toContain(mistake.message);
  },
);

test('a value that the database cannot store is 400, and a mistake of the program with a value is 500', async () => {
  const { url, drop } = await createMigratedDatabase();
  const database = openDatabase(url, 1);
  const invalidTime = () => Promise.reject(new RangeError('Invalid time value'));
  for (const refused of [await thrown(database.run(invalidTime)), await thrown(database.transaction(invalidTime))])
    expect(toProblem(refused)).toMatchObject({ status: 400, cause: refused });
  const decide = () => {
    throw new TypeError('no function');
  };
  const mistake = await thrown(
    changeOrRefuse({ database } as unknown as ApiDeps, [{ id: 'x', by: null, scope: null, decide }], () => ''),
  );
  expect(toProblem(mistake).status).toBe(500);
  await database.close();
  await drop();
});
