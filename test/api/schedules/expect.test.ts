import { describe, expect, test } from 'vitest';
import { SCHEDULE, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();
const pathOf = (id: string) => `/api/v1/schedules/${id}`;
const put = (id: string, more: object) => api.call('PUT', pathOf(id), { ...SCHEDULE, ...more });
const patch = (id: string, more: object) => api.call('PATCH', pathOf(id), more);
const BOTH = { startWithinSeconds: 60, finishWithinSeconds: 2_678_400 };

describe('expect', () => {
  test('is answered with both bounds, one of which may be null', async () => {
    expect((await put('both', { expect: BOTH })).body).toMatchObject({ expect: BOTH });
    const { body } = await put('one', { expect: { finishWithinSeconds: 1 } });
    expect(body).toMatchObject({ expect: { startWithinSeconds: null, finishWithinSeconds: 1 } });
    expect((await api.call('GET', pathOf('one'))).body).toMatchObject({ expect: body['expect'] });
  });

  test('is merged by a patch, and removed by null', async () => {
    await put('patched', {});
    const steps = [
      [{ startWithinSeconds: 5 }, { startWithinSeconds: 5, finishWithinSeconds: null }],
      [{ finishWithinSeconds: 9 }, { startWithinSeconds: 5, finishWithinSeconds: 9 }],
      [{ startWithinSeconds: null }, { startWithinSeconds: null, finishWithinSeconds: 9 }],
      [null, null],
    ] as const;
    for (const [change, left] of steps)
      expect((await patch('patched', { expect: change })).body).toMatchObject({ expect: left });
  });

  test.for<[unknown, string[]]>([
    [{}, ['/expect']],
    [{ startWithinSeconds: null, finishWithinSeconds: null }, ['/expect']],
    [{ startWithinSeconds: 0 }, ['/expect/startWithinSeconds']],
    [{ finishWithinSeconds: 2_678_401 }, ['/expect/finishWithinSeconds']],
    [{ startWithinSeconds: 1.5 }, ['/expect/startWithinSeconds']],
    [60, ['/expect']],
  ])('%j is refused', async ([sent, paths]) => {
    const answer = await put('refused', { expect: sent });
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });

  test('is null of a schedule that was written before there was such a field', async () => {
    await put('old', {});
    await api.sql`UPDATE schedule_versions SET definition = definition - 'expect' WHERE schedule_id = 'old'`;
    expect((await api.call('GET', pathOf('old'))).body).toMatchObject({ expect: null });
    const { body } = await api.call('GET', `${pathOf('old')}/versions`);
    expect(body['items']?.[0]).toMatchObject({ schedule: { expect: null } });
  });
});

describe('unmet', () => {
  const list = async (query: string) => {
    const { status, body } = await api.call('GET', `/api/v1/runs?${query}`);
    if (status !== 200) return status;
    return (body['items'] as unknown as { unmet: string[] }[]).map(({ unmet }) => unmet);
  };

  test('is answered, and filters open and ended runs, as the bulk actions do', async () => {
    await put('broken', { expect: BOTH });
    const fired = await Promise.all([1, 2, 3].map(() => api.call('POST', `${pathOf('broken')}/fire`)));
    const [open = '', ended = '', kept = ''] = fired.map(({ body }) => body['id'] as unknown as string);
    await api.sql`UPDATE runs SET bound_at = clock_timestamp() - interval '1 s' WHERE id = ${ended}`;
    await api.call('POST', `/api/v1/runs/${ended}/cancel`);
    await api.sql`UPDATE runs SET unmet = '{start,finish}' WHERE id = ${open}`;
    expect((await api.call('GET', `/api/v1/runs/${kept}`)).body).toMatchObject({ unmet: [] });
    expect((await api.call('GET', `/api/v1/runs/${ended}`)).body).toMatchObject({ unmet: ['start'] });
    expect(await list('unmet=start')).toHaveLength(2);
    expect(await list('unmet=finish')).toEqual([['start', 'finish']]);
    expect(await list('unmet=start,finish&scheduleId=broken&status=cancelled')).toEqual([['start']]);
    expect(await list('unmet=end')).toBe(400);
    const { body } = await api.call('POST', '/api/v1/runs/bulk', {
      ...{ action: 'cancel', dryRun: true },
      filter: { unmet: ['finish'] },
    });
    expect(body).toMatchObject({ matched: 1, sample: [open] });
  });
});
