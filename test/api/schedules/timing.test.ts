import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, SCHEDULE, TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();
beforeAll(async () => {
  await put('parent', SCHEDULE);
});

const put = (id: string, body: object) => api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...body });
const patch = (id: string, body: object) => api.call('PATCH', `/api/v1/schedules/${id}`, body);
const remove = (id: string) => api.call('DELETE', `/api/v1/schedules/${id}`);
const msOf = (at: unknown) => Date.parse(at as string);
const faults = ({ status, body }: Answer) => ({ status, errors: body['errors'] });

/** By the database's clock, which decides. */
async function fromNow(seconds: number): Promise<string> {
  const [row] = await api.sql<{ at: Date }[]>`SELECT clock_timestamp() + make_interval(secs => ${seconds}) AS at`;
  return row?.at.toISOString() ?? '';
}

const KINDS = {
  cron: '0 12 29 2 *',
  everySeconds: 3600,
  at: '2090-01-01T00:00:00.000Z',
  after: { scheduleId: 'parent', on: ['succeeded'] },
};
const NONE = { cron: null, everySeconds: null, at: null, after: null };

describe('the kind', () => {
  test.each(Object.entries(KINDS))('%s alone makes a schedule', async (kind, value) => {
    const created = await put(`kind-${kind}`, { [kind]: value });
    expect([created.status, created.body['status']]).toEqual([201, 'active']);
    expect(created.body).toMatchObject({ ...NONE, [kind]: value });
    const again = await api.call('PUT', `/api/v1/schedules/kind-${kind}`, created.text);
    expect([again.status, again.text]).toEqual([200, created.text]);
    expect((await api.call('GET', `/api/v1/schedules/kind-${kind}`)).text).toBe(created.text);
    await remove(`kind-${kind}`);
  });

  test('says when the first fire is due', async () => {
    expect((await put('first-at', { at: '2090-01-01T02:00:00.25+02:00' })).body).toMatchObject({
      at: '2090-01-01T00:00:00.250Z',
      nextFireAt: '2090-01-01T00:00:00.250Z',
    });
    const startAt = '2089-12-31T23:59:59.999Z';
    const interval = await put('first-interval', { everySeconds: 7, startAt });
    expect(interval.body).toMatchObject({ startAt, nextFireAt: startAt });
    const { createdAt, nextFireAt } = (await put('first-unanchored', { everySeconds: 3600 })).body;
    expect(msOf(nextFireAt) - msOf(createdAt)).toBe(3_600_000);
    expect((await put('first-after', { after: { scheduleId: '*' } })).body).toMatchObject({
      after: { scheduleId: '*', on: ['succeeded'] },
      status: 'active',
      nextFireAt: null,
    });
  });

  test('may change to an `at` in the past, within its grace, unless the schedule is planned up to then', async () => {
    await put('to-at', SCHEDULE);
    const planned = await fromNow(-20);
    await api.sql`UPDATE schedules SET planned_through = ${planned} WHERE id = 'to-at'`;
    for (const at of [await fromNow(-30), planned]) {
      const message = `is not after ${planned}, up to which this schedule has been planned: it would never fire`;
      expect(faults(await put('to-at', { at }))).toEqual({ status: 422, errors: [{ path: '/at', message }] });
    }
    expect((await put('to-at', { at: await fromNow(-10) })).status).toBe(200);
    await remove('to-at');
  });

  test('is needed', async () => {
    for (const body of [{}, NONE]) {
      const answer = await put('none', body);
      expect(faults(answer)).toEqual({
        status: 400,
        errors: [{ path: '/cron', message: expect.stringMatching(/required.*everySeconds.*at.*after/) as string }],
      });
    }
  });

  test('is one: if there are several, each is named, beside all other faults', async () => {
    const two = await put('several', { cron: '* * * * *', at: KINDS.at, after: null });
    expect([two.status, faultPaths(two)]).toEqual([400, ['/at', '/cron']]);
    const all = await put('several', { ...KINDS, cron: 'nonsense', everySeconds: 0, colour: 'red' });
    expect(faultPaths(all)).toEqual(['/after', '/at', '/colour', '/cron', '/everySeconds']);
    const batch = await api.call('POST', '/api/v1/schedules/batch', {
      items: [
        { id: 'a', target: TARGET },
        { id: 'b', target: TARGET, ...KINDS },
        { id: 'c', ...SCHEDULE, graceSeconds: -1 },
      ],
    });
    expect([batch.status, faultPaths(batch)]).toEqual([
      400,
      [
        '/items/0/cron',
        '/items/1/after',
        '/items/1/at',
        '/items/1/cron',
        '/items/1/everySeconds',
        '/items/2/graceSeconds',
      ],
    ]);
  });

  test('is changed by a patch that names another, with the old one null or absent', async () => {
    const kinds = Object.entries(KINDS);
    for (const [from, old] of kinds) {
      for (const [to, value] of kinds.filter(([kind]) => kind !== from)) {
        for (const more of [{}, { [from]: null }]) {
          await put('changes', { [from]: old, priority: 'low', timezone: 'Asia/Tokyo' });
          const changed = await patch('changes', { [to]: value, ...more });
          expect(changed.status).toBe(200);
          expect(changed.body).toMatchObject({
            ...NONE,
            [to]: value,
            priority: 'low',
            timezone: 'Asia/Tokyo',
          });
          await remove('changes');
        }
      }
    }
  });

  test('cannot be removed, or doubled, by a patch', async () => {
    await put('stays', SCHEDULE);
    const nothing = await patch('stays', { cron: null });
    expect([nothing.status, faultPaths(nothing)]).toEqual([400, ['/cron']]);
    const two = await patch('stays', { everySeconds: 60, at: KINDS.at });
    expect([two.status, faultPaths(two)]).toEqual([400, ['/at', '/everySeconds']]);
    const others = await patch('stays', { everySeconds: null, at: null, after: null });
    expect([others.status, others.body['version'], others.body['cron']]).toEqual([200, 1, SCHEDULE.cron]);
  });

  test('`after` is patched by its members', async () => {
    await put('followed', SCHEDULE);
    await put('member', { after: { scheduleId: 'parent', on: ['failed'] } });
    const renamed = await patch('member', { after: { scheduleId: 'followed' } });
    expect(renamed.body['after']).toEqual({ scheduleId: 'followed', on: ['failed'] });
    const reset = await patch('member', { after: { on: null } });
    expect(reset.body['after']).toEqual({ scheduleId: 'followed', on: ['succeeded'] });
    const orphaned = await patch('member', { after: { scheduleId: null } });
    expect([orphaned.status, faultPaths(orphaned)]).toEqual([400, ['/after/scheduleId']]);
    await put('not-after', SCHEDULE);
    const half = await patch('not-after', { after: { on: ['failed'] } });
    expect([half.status, faultPaths(half)]).toEqual([400, ['/after/scheduleId']]);
    for (const id of ['member', 'followed']) expect((await remove(id)).status).toBe(204);
  });

  test('that has no zone ignores a wrong one', async () => {
    const { body } = await put('zoned', { everySeconds: 60, timezone: 'europe/berlin' });
    expect(body['timezone']).toBe('europe/berlin');
    expect((await put('zoned', { everySeconds: 60, timezone: 'Mars/Olympus' })).status).toBe(400);
  });
});

describe('each field', () => {
  const EVERY = { everySeconds: 60 };
  const taken: [field: string, value: unknown, base?: object][] = [
    ['everySeconds', 1, {}],
    ['everySeconds', 366 * 86_400, {}],
    ['catchUp', 'skip'],
    ['catchUp', 'latest'],
    ['catchUp', 'all'],
    ['catchUpLimit', 0],
    ['catchUpLimit', 10_000],
    ['graceSeconds', 0],
    ['graceSeconds', 31 * 86_400],
    ['overlap', 'allow'],
    ['overlap', 'skip'],
    ['overlap', 'queue'],
    ['overlap', 'replace'],
    ['jitterSeconds', 0],
    ['jitterSeconds', 86_400],
    ['startAt', '2000-01-01T00:00:00.000Z'],
    ['startAt', '2099-12-31T23:59:59.999Z'],
    ['endAt', '2100-01-01T00:00:00.000Z'],
    ['at', '2100-01-01T00:00:00.000Z', {}],
    [
      'after',
      { scheduleId: 'parent', on: ['cancelled', 'skipped', 'abandoned', 'unknown', 'failed', 'succeeded'] },
      {},
    ],
  ];
  test.each(taken)('%s takes %j, and keeps it', async (field, value, base = EVERY) => {
    const created = await put('bounds', { ...base, [field]: value });
    expect([created.status, created.body[field]]).toEqual([201, value]);
    const read = await api.call('GET', '/api/v1/schedules/bounds');
    expect(read.body[field]).toEqual(value);
    const back = await api.call('PUT', '/api/v1/schedules/bounds', read.text);
    expect([back.status, back.body['version']]).toEqual([200, 1]);
    await remove('bounds');
  });

  const refused: [field: string, value: unknown, path?: string][] = [
    ['everySeconds', 0],
    ['everySeconds', 0.5],
    ['everySeconds', 366 * 86_400 + 1],
    ['everySeconds', '60'],
    ['at', '1999-12-31T23:59:59.999Z'],
    ['at', '2100-01-01T00:00:00.001Z'],
    ['at', '2090-01-01'],
    ['at', '2090-01-01T00:00:00'],
    ['at', 1_900_000_000_000],
    ['startAt', 'tomorrow'],
    ['endAt', '2090-13-01T00:00:00Z'],
    ['after', {}, '/after/scheduleId'],
    ['after', 'parent'],
    ['after', { scheduleId: '-x' }, '/after/scheduleId'],
    ['after', { scheduleId: '**' }, '/after/scheduleId'],
    ['after', { scheduleId: 'x'.repeat(129) }, '/after/scheduleId'],
    ['after', { scheduleId: 'parent', on: [] }, '/after/on'],
    ['after', { scheduleId: 'parent', on: 'failed' }, '/after/on'],
    ['after', { scheduleId: 'parent', on: ['running'] }, '/after/on/0'],
    ['after', { scheduleId: 'parent', on: ['failed', 'failed'] }, '/after/on'],
    ['after', { scheduleId: 'parent', delay: 1 }, '/after/delay'],
    ['catchUp', 'none'],
    ['catchUpLimit', -1],
    ['catchUpLimit', 10_001],
    ['catchUpLimit', 1.5],
    ['graceSeconds', -1],
    ['graceSeconds', 31 * 86_400 + 1],
    ['graceSeconds', 0.5],
    ['overlap', 'forbid'],
    ['jitterSeconds', -1],
    ['jitterSeconds', 86_401],
    ['jitterSeconds', '5'],
  ];
  test.each(refused)('%s refuses %j, in every call', async (field, value, path = `/${field}`) => {
    const base = field in KINDS ? {} : { cron: SCHEDULE.cron };
    const created = await put('refused', { ...base, [field]: value });
    expect([created.status, faultPaths(created)]).toEqual([400, [path]]);
    const patched = await patch('parent', { [field]: value });
    expect([patched.status, faultPaths(patched)]).toEqual([400, [path]]);
    const items = [{ id: 'refused', target: TARGET, ...base, [field]: value }];
    const batch = await api.call('POST', '/api/v1/schedules/batch', { items });
    expect([batch.status, faultPaths(batch)]).toEqual([400, [`/items/0${path}`]]);
  });

  test('accepts -0 as 0, and sending it again changes nothing', async () => {
    const body = `{"cron":"${SCHEDULE.cron}","target":${JSON.stringify(TARGET)},"graceSeconds":-0,"jitterSeconds":-0}`;
    expect((await api.call('PUT', '/api/v1/schedules/zero', body)).status).toBe(201);
    const again = await api.call('PUT', '/api/v1/schedules/zero', body);
    expect([again.status, again.body['version']]).toEqual([200, 1]);
  });

  test('the message about an expression helps to mend it', async () => {
    const answer = await put('words', { cron: '5/15 * * * *' });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('5-59/15');
  });
});

describe('a schedule that can no longer fire is 422', () => {
  const past = '2020-01-01T00:00:00Z';
  const impossible: [what: string, body: object, paths: string[]][] = [
    ['an expression that matches nothing', { cron: '0 0 31 2 *' }, ['/cron']],
    ['one moment long past', { at: past }, ['/at']],
    ['an end that has passed', { cron: '* * * * *', endAt: past }, ['/endAt']],
    ['an interval whose end has passed', { everySeconds: 60, endAt: past }, ['/endAt']],
    ['a follower whose end has passed', { after: { scheduleId: 'parent' }, endAt: past }, ['/endAt']],
    [
      'a start behind the end',
      { cron: '* * * * *', startAt: '2090-01-02T00:00:00Z', endAt: '2090-01-01T00:00:00Z' },
      ['/startAt'],
    ],
    [
      'a start at the end',
      { everySeconds: 60, startAt: '2090-01-01T00:00:00Z', endAt: '2090-01-01T00:00:00Z' },
      ['/startAt'],
    ],
    [
      'a follower with a start behind the end',
      { after: { scheduleId: 'parent' }, startAt: '2090-01-02T00:00:00Z', endAt: '2090-01-01T00:00:00Z' },
      ['/startAt'],
    ],
    [
      'nothing between start and end',
      { cron: '0 12 * * *', startAt: '2090-01-01T12:00:00.001Z', endAt: '2090-01-02T12:00:00Z' },
      ['/endAt'],
    ],
    [
      'nothing between start and end in the zone',
      {
        cron: '0 12 * * *',
        timezone: 'Asia/Tokyo',
        startAt: '2090-01-01T04:00:00Z',
        endAt: '2090-01-02T02:00:00Z',
      },
      ['/endAt'],
    ],
    ['one moment before the start', { at: KINDS.at, startAt: '2090-01-01T00:00:00.001Z' }, ['/at']],
    ['one moment at the end', { at: KINDS.at, endAt: KINDS.at }, ['/at']],
    [
      'all of it',
      { cron: '0 0 30 2 *', startAt: '2090-01-01T00:00:00Z', endAt: past },
      ['/cron', '/endAt', '/startAt'],
    ],
    [
      'a moment, a start and an end that are all wrong',
      { at: past, startAt: '2090-01-01T00:00:00Z', endAt: past },
      ['/at', '/endAt', '/startAt'],
    ],
  ];
  test.each(impossible)('%s', async (_what, body, paths) => {
    await put('patched', SCHEDULE);
    const created = await put('impossible', body);
    expect([created.status, faultPaths(created)]).toEqual([422, paths]);
    const patched = await patch('patched', body);
    expect([patched.status, faultPaths(patched)]).toEqual([422, paths]);
    const items = [
      { id: 'possible', ...SCHEDULE },
      { id: 'impossible', target: TARGET, ...body },
    ];
    const batch = await api.call('POST', '/api/v1/schedules/batch', { items });
    expect([batch.status, faultPaths(batch)]).toEqual([422, paths.map((path) => `/items/1${path}`)]);
    expect((await api.call('GET', '/api/v1/schedules/impossible')).status).toBe(404);
    expect((await api.call('GET', '/api/v1/schedules/possible')).status).toBe(404);
  });

  const possible: [what: string, body: object][] = [
    ['a single fire at the inclusive start', { at: KINDS.at, startAt: KINDS.at }],
    [
      'a single fire at the inclusive start, before the exclusive end',
      { cron: '0 12 * * *', startAt: '2090-01-01T12:00:00Z', endAt: '2090-01-01T12:00:00.001Z' },
    ],
    [
      'an interval longer than its period, which fires at its anchor',
      { everySeconds: 86_400, startAt: '2090-01-01T00:00:00Z', endAt: '2090-01-01T00:00:01Z' },
    ],
    ['29 February on a Monday', { cron: '0 0 29 2 +MON' }],
    ['a start long ago', { everySeconds: 60, startAt: past }],
  ];
  test.each(possible)('but not %s', async (_what, body) => {
    expect((await put('just-possible', body)).status).toBe(201);
    await remove('just-possible');
  });

  test('an interval that ends before its first fire', async () => {
    const answer = await put('short', { everySeconds: 3600, endAt: await fromNow(600) });
    expect([answer.status, faultPaths(answer)]).toEqual([422, ['/endAt']]);
    expect((await put('short', { everySeconds: 300, endAt: await fromNow(600) })).status).toBe(201);
  });

  test('one moment that is late by less than the grace is due at once', async () => {
    const at = await fromNow(-30);
    expect((await put('late', { at, graceSeconds: 20 })).status).toBe(422);
    const { status, body } = await put('late', { at });
    expect([status, body['nextFireAt'], body['status']]).toEqual([201, at, 'active']);
  });

  test('except for the stored timing: all other fields of such a schedule can be written', async () => {
    const stored: [id: string, body: object, from: object][] = [
      ['stored-cron', { cron: '0 0 31 2 *' }, { cron: SCHEDULE.cron }],
      ['stored-at', { at: past, graceSeconds: 5 }, { at: KINDS.at, graceSeconds: 5 }],
      ['stored-end', { everySeconds: 60, endAt: past }, { everySeconds: 60 }],
      ['stored-after', { after: { scheduleId: 'parent', on: ['failed'] }, endAt: past }, { everySeconds: 60 }],
    ];
    for (const [id, body, from] of stored) {
      await put(id, from);
      await store(id, body);
      const described = await put(id, { ...body, description: 'still there' });
      expect([id, described.status, described.body['description']]).toEqual([id, 200, 'still there']);
      const labelled = await patch(id, { labels: { a: 'b' }, enabled: false, catchUp: 'all' });
      expect([id, labelled.status]).toEqual([id, 200]);
      const items = [{ id, target: TARGET, ...body }];
      expect((await api.call('POST', '/api/v1/schedules/batch', { items })).body['updated']).toBe(1);
      const moved = await patch(id, { startAt: '2019-01-01T00:00:00Z' });
      expect([id, moved.status]).toEqual([id, 422]);
    }
    expect((await patch('stored-cron', { timezone: 'Asia/Tokyo' })).status).toBe(422);
    expect((await patch('stored-at', { timezone: 'Asia/Tokyo' })).status).toBe(200);
    expect((await patch('stored-at', { graceSeconds: 6 })).status).toBe(422);
    expect((await patch('stored-end', { graceSeconds: 6 })).status).toBe(200);
    expect((await patch('stored-end', { everySeconds: 61 })).status).toBe(422);
    expect((await patch('stored-end', { endAt: null })).status).toBe(200);
  });

  test('an expression or a zone that only an earlier version accepted blocks only edits that need it', async () => {
    for (const [id, fields] of [
      ['old-cron', { cron: '5/15 * * * *' }],
      ['old-zone', { cron: '0 9 * * *', timezone: 'Europe/Atlantis' }],
    ] as const) {
      await put(id, SCHEDULE);
      await store(id, fields);
      const paused = await patch(id, { enabled: false, labels: { a: 'b' } });
      expect([id, paused.status, paused.body['status']]).toEqual([id, 200, 'paused']);
      expect(paused.body).toMatchObject(fields);
      const resumed = await patch(id, { enabled: true });
      expect([id, resumed.status, faultPaths(resumed)]).toEqual([id, 422, ['/cron']]);
      expect((await patch(id, fields)).status).toBe(400);
      const mended = await patch(id, { cron: '5-59/15 * * * *', timezone: null, enabled: true });
      expect([id, mended.status, mended.body['status']]).toEqual([id, 200, 'active']);
    }
    await store('old-zone', { timezone: 'Europe/Atlantis' });
    expect((await patch('old-zone', { everySeconds: 60 })).status).toBe(200);
    expect(api.warnings).toEqual([]);
  });

  test('an expression whose H makes it so, for the schedule’s own id', async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => put(`picked-${n}`, { cron: '0 0 30 H *' })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 422]));
    const barren = answers.find(({ status }) => status === 422);
    expect(barren && faults(barren).errors).toEqual([{ path: '/cron', message: 'never fires' }]);
  });

  /** As if it had been written while it could still fire. */
  async function store(id: string, fields: object): Promise<void> {
    const isKind = Object.keys(fields).some((name) => name in KINDS);
    const none = isKind ? NONE : {};
    const instants = Object.entries(fields).map(([name, value]) => [
      name,
      /^(at|endAt)$/.test(name) ? Date.parse(value as string) : (value as unknown),
    ]);
    const definition = { ...none, ...(Object.fromEntries(instants) as object) };
    await api.sql`UPDATE schedule_versions SET definition = definition || ${JSON.stringify(definition)}::text::jsonb
      WHERE schedule_id = ${id}`;
  }
});

describe('the schedule that another one follows', () => {
  const follow = (scheduleId: string) => ({ after: { scheduleId } });

  test('must exist', async () => {
    const created = await put('lost', follow('nobody'));
    expect([created.status, faultPaths(created)]).toEqual([422, ['/after/scheduleId']]);
    await put('finds', follow('parent'));
    const patched = await patch('finds', follow('nobody'));
    expect([patched.status, faultPaths(patched)]).toEqual([422, ['/after/scheduleId']]);
    await remove('finds');
  });

  test('may come with the same batch, in any order', async () => {
    const batch = await api.call('POST', '/api/v1/schedules/batch', {
      items: [
        { id: 'chain-c', target: TARGET, ...follow('chain-b') },
        { id: 'chain-b', target: TARGET, ...follow('chain-a') },
        { id: 'chain-a', ...SCHEDULE },
      ],
    });
    expect([batch.status, batch.body['created']]).toEqual([200, 3]);
  });

  test('is neither itself, nor one of its followers', async () => {
    for (const [id, answer] of [
      ['itself', await put('itself', follow('itself'))],
      ['chain-a', await patch('chain-a', follow('chain-c'))],
      ['chain-a', await put('chain-a', follow('chain-b'))],
    ] as const) {
      expect([id, answer.status, faultPaths(answer)]).toEqual([id, 422, ['/after/scheduleId']]);
    }
  });

  test('cannot be deleted: 409 names its followers', async () => {
    const refused = await remove('chain-a');
    expect([refused.status, refused.body['title']]).toEqual([409, 'Conflict']);
    expect(refused.text).toContain('chain-b');
    expect(refused.text).not.toContain('chain-c');
    expect((await api.call('GET', '/api/v1/schedules/chain-a')).status).toBe(200);
    for (const id of ['chain-c', 'chain-b', 'chain-a']) expect((await remove(id)).status).toBe(204);
  });
});

describe('a thousand expressions in one batch', () => {
  const batch = (items: object[]) => api.call('POST', '/api/v1/schedules/batch', { items });
  const hard = (n: number) => `${n % 60} ${n % 24} 29 2 +MON`;

  test('are each checked: those that never fire, or not in time, are named', async () => {
    const items = Array.from({ length: 1000 }, (_, n) => ({
      id: `hard-${n}`,
      target: TARGET,
      cron: n % 100 === 7 ? `${n % 60} ${n % 24} 30 2 *` : hard(n),
      timezone: 'America/New_York',
      endAt: n % 100 === 8 ? '2030-01-01T00:00:00Z' : null,
    }));
    const refused = await batch(items);
    expect(refused.status).toBe(422);
    const hundreds = Array.from({ length: 10 }, (_, n) => 100 * n);
    expect(new Set(faultPaths(refused))).toEqual(
      new Set(hundreds.flatMap((n) => [`/items/${n + 7}/cron`, `/items/${n + 8}/endAt`])),
    );
    const fine = items.map((item, n) => ({ ...item, cron: hard(n), endAt: null }));
    expect((await batch(fine)).body['created']).toBe(1000);
  });
});

test.each([
  ['BST', 'write Europe/London'],
  ['Berlin', 'write Europe/Berlin'],
])('the zone %s is refused, with what to write instead', async (timezone, hint) => {
  const answer = await api.call('PUT', '/api/v1/schedules/zoned', { ...SCHEDULE, timezone });
  expect(answer.status).toBe(400);
  expect(answer.body).toMatchObject({
    errors: [{ path: '/timezone', message: `is not the IANA name of a time zone; ${hint}` }],
  });
});
