// @module-tag attack
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCHEDULE, TARGET, faultPaths, quietApi } from '../api.ts';

const api = quietApi();
afterAll(async () => {
  const counts = await api.sql`SELECT (SELECT count(*) FROM schedules)::int AS schedules,
    (SELECT count(*) FROM schedule_versions)::int AS versions, (SELECT count(*) FROM all_runs)::int AS runs`;
  expect(counts[0]).toEqual({ schedules: 1, versions: 1, runs: 0 });
});

// The one schedule there is; nothing below may change it, or add to it.
beforeAll(() => api.call('PUT', '/api/v1/schedules/there', SCHEDULE));

const spread = (body: object, more: string) => `${JSON.stringify(body).slice(0, -1)},${more}}`;

/** Of fields; what is no body at all is sent to every route by `test/attacks/every-route.test.ts`. */
const BODIES: [name: string, body: string][] = [
  ['a number too large', spread(SCHEDULE, '"timeoutSeconds":1e999')],
  ['a fraction of an attempt', spread(SCHEDULE, '"retry":{"maxAttempts":1.5}')],
  ['a NUL in a description', spread(SCHEDULE, '"description":"a\\u0000b"')],
  ['half a surrogate pair', spread(SCHEDULE, '"description":"\\ud800"')],
  ['a NUL in a label', spread(SCHEDULE, '"labels":{"a":"\\u0000"}')],
  ['a NUL in a label’s name', spread(SCHEDULE, '"labels":{"a\\u0000":"b"}')],
  [
    'a surrogate in a header',
    spread({ cron: SCHEDULE.cron }, `"target":${spread(TARGET, '"headers":{"A":"\\udc00"}')}`),
  ],
  [
    'a NUL in a header’s name',
    spread({ cron: SCHEDULE.cron }, `"target":${spread(TARGET, '"headers":{"A\\u0000":"x"}')}`),
  ],
  ['a NUL in the cron', spread({ target: TARGET }, '"cron":"* * * * *\\u0000"')],
  ['a NUL in the zone', spread(SCHEDULE, '"timezone":"UTC\\u0000"')],
  ['__proto__ in labels', spread(SCHEDULE, '"labels":{"__proto__":"x"}')],
  [
    '__proto__ in headers',
    spread({ cron: SCHEDULE.cron }, `"target":${spread(TARGET, '"headers":{"__proto__":"x"}')}`),
  ],
  ['33 labels', spread(SCHEDULE, `"labels":{${Array.from({ length: 33 }, (_, n) => `"l${n}":""`).join()}}`)],
  ['a long label', spread(SCHEDULE, `"labels":{"a":"${'x'.repeat(256)}"}`)],
  ['a long label name', spread(SCHEDULE, `"labels":{"${'x'.repeat(64)}":""}`)],
  ['a long description', spread(SCHEDULE, `"description":"${'x'.repeat(1001)}"`)],
  ['two kinds', spread(SCHEDULE, '"everySeconds":60')],
  ['an interval of -0', spread({ target: TARGET }, '"everySeconds":-0')],
  ['an interval as a text', spread({ target: TARGET }, '"everySeconds":"60"')],
  ['an instant as a number', spread({ target: TARGET }, '"at":1900000000000')],
  ['an instant without an offset', spread({ target: TARGET }, '"at":"2030-01-01T00:00:00"')],
  ['a day that does not exist', spread({ target: TARGET }, '"at":"2030-02-30T00:00:00Z"')],
  ['a NUL in an instant', spread({ target: TARGET }, '"at":"2030-01-01T00:00:00Z\\u0000"')],
  ['an `after` that is a list', spread({ target: TARGET }, '"after":[{"scheduleId":"x"}]')],
  ['an `after` with more in it', spread({ target: TARGET }, '"after":{"scheduleId":"x","of":1}')],
  ['a NUL in whom it follows', spread({ target: TARGET }, '"after":{"scheduleId":"x\\u0000"}')],
  ['__proto__ in `after`', spread({ target: TARGET }, '"after":{"scheduleId":"x","__proto__":{}}')],
  ['a grace of half a second', spread(SCHEDULE, '"graceSeconds":0.5')],
];

describe('a body of', () => {
  test.each(BODIES)('%s is 400 everywhere', async (_name, body) => {
    for (const [method, path] of [
      ['PUT', '/api/v1/schedules/new'],
      ['PUT', '/api/v1/schedules/there'],
      ['PATCH', '/api/v1/schedules/there'],
      ['POST', '/api/v1/schedules/batch'],
      ['POST', '/api/v1/preview'],
    ] as const) {
      const answer = await api.call(method, path, body);
      expect([method, path, answer.status]).toEqual([method, path, 400]);
      expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(answer.body['title']).toBe('Bad Request');
    }
    expect((await api.call('POST', '/api/v1/schedules/there/fire', body)).status).toBe(400);
  });

  test.each(BODIES)('%s is 400 as an item of a batch', async (_name, body) => {
    expect((await api.call('POST', '/api/v1/schedules/batch', `{"items":[${body}]}`)).status).toBe(400);
  });

  test('every wrong type in every field is 400 and named', async () => {
    const fields = (
      'id description cron everySeconds at after timezone startAt endAt catchUp catchUpLimit ' +
      'graceSeconds overlap jitterSeconds enabled target retry timeoutSeconds priority labels'
    ).split(' ');
    const wrong = [true, 12345678, 'wrong', [], [[]], {}, { a: {} }, null];
    for (const field of fields) {
      for (const value of wrong) {
        // One kind beside another would be a fault of both.
        const kind = ['everySeconds', 'at', 'after'].includes(field) ? { cron: null } : {};
        const answer = await api.call('PUT', '/api/v1/schedules/new', {
          ...SCHEDULE,
          ...kind,
          enabled: true,
          [field]: value,
        });
        const named = value === null && 'cron' in kind ? '/cron' : `/${field}`;
        if (answer.status < 300) await api.call('DELETE', '/api/v1/schedules/new');
        else expect([answer.status, faultPaths(answer).filter((path) => !path.startsWith(named))]).toEqual([400, []]);
        expect(answer.status).toBeLessThan(500);
      }
    }
    await api.sql`DELETE FROM schedule_versions WHERE schedule_id = 'new'`;
  });

  test('more than 256 KiB is 413, announced or not', async () => {
    const body = spread(SCHEDULE, `"payload":"${'x'.repeat(256 * 1024)}"`);
    for (const [method, path] of [
      ['PUT', '/api/v1/schedules/new'],
      ['PATCH', '/api/v1/schedules/there'],
      ['POST', '/api/v1/schedules/there/fire'],
      ['POST', '/api/v1/preview'],
    ] as const) {
      const answer = await api.call(method, path, body);
      expect([answer.status, answer.body['status']]).toEqual([413, 413]);
    }
    const chunk = `40000\r\n${'x'.repeat(0x40000)}\r\n`;
    const chunked = await api.raw(
      'PUT /api/v1/schedules/new HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
        `Transfer-Encoding: chunked\r\n\r\n${chunk}${chunk}0\r\n\r\n`,
    );
    expect(chunked).toMatch(/^HTTP\/1.1 413 /);
  });
});

describe('media types', () => {
  test.each(['application/json; charset=latin1', 'application/merge-patch+json', 'nonsense'])(
    '%j is 415',
    async (type) => {
      const answer = await api.call('PUT', '/api/v1/schedules/new', JSON.stringify(SCHEDULE), {
        'content-type': type,
      });
      expect([answer.status, answer.body['status']]).toEqual([415, 415]);
    },
  );

  test.each(['application/json; charset=utf-8', 'application/json;charset="UTF-8"', 'Application/JSON'])(
    '%s is JSON',
    async (type) => {
      const answer = await api.call('PUT', '/api/v1/schedules/there', JSON.stringify(SCHEDULE), {
        'content-type': type,
      });
      expect(answer.status).toBe(200);
    },
  );
});

describe('paths', () => {
  test.each([
    'GET / HTTP/9.9\r\n\r\n',
    'BLAH\r\n\r\n',
    'GET /healthz HTTP/1.1\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: localhost\r\nBad Header: 1\r\n\r\n',
  ])('what is not HTTP is 400 and closed: %j', async (bytes) => {
    const answer = await api.raw(bytes);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
  });

  test('a name, an expression, an URL of the right size and the wrong kind costs little time', async () => {
    const hostile = {
      cron: `${'1,'.repeat(125)}1 * * * *`,
      target: { type: 'http', url: `http://x/${'{{'.repeat(1000)}` },
    };
    const answer = await api.call('PUT', '/api/v1/schedules/new', {
      ...hostile,
      timezone: 'A/'.repeat(100_000),
    });
    expect([answer.status, faultPaths(answer)]).toEqual([400, expect.arrayContaining(['/timezone'])]);
  });
});
