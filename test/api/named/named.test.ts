import { describe, expect, test } from 'vitest';
import { type Answer, faultPaths, quietApi, detailOf, idsOf } from '../api.ts';
import { THINGS, type Thing } from './things.ts';

const api = quietApi({ takesSecretFiles: true, sendsMail: true });

const textOf = ({ body }: Answer, field: string) => body[field] as unknown as string;

function callsOf({ list }: Thing) {
  const at = (id: string) => `/api/v1/${list}/${id}`;
  return {
    at,
    get: (id: string) => api.call('GET', at(id)),
    put: (id: string, body: unknown, headers?: Record<string, string>) => api.call('PUT', at(id), body, headers),
    remove: (id: string, headers?: Record<string, string>) => api.call('DELETE', at(id), undefined, headers),
    page: (query: string) => api.call('GET', `/api/v1/${list}?${query}`),
  };
}

describe.each(THINGS)('of $list, one', (thing) => {
  const { at, get, put, remove } = callsOf(thing);
  const [first, second] = thing.definitions;
  const etag = (version: number) => `"${version}"`;

  test('is created, read, replaced, left as it was where nothing changes, and deleted', async () => {
    const made = await put('one', first);
    expect([made.status, made.headers.get('location'), made.headers.get('etag')]).toEqual([
      ...[201, at('one'), etag(1)],
    ]);
    expect(made.body).toEqual({ id: 'one', ...thing.answers[0], updatedAt: made.body['updatedAt'] });
    const read = await get('one');
    expect([read.status, read.headers.get('etag'), read.body]).toEqual([200, etag(1), made.body]);
    for (const same of [read.body, first]) {
      const again = await put('one', same);
      expect([again.status, again.headers.get('etag'), again.body]).toEqual([200, etag(1), made.body]);
    }
    const replaced = await put('one', second);
    expect([replaced.status, replaced.headers.get('etag'), replaced.body]).toEqual([
      200,
      etag(2),
      { id: 'one', ...thing.answers[1], updatedAt: replaced.body['updatedAt'] },
    ]);
    expect((await remove('one')).status).toBe(204);
    for (const answer of [await get('one'), await remove('one')])
      expect(detailOf(answer)).toEqual([404, `there is no ${thing.word} one`]);
  });

  test('is refused with every fault at once, and nothing is stored', async () => {
    for (const [body, paths] of thing.faulty) {
      const answer = await put('faulty', body);
      expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
    }
    expect((await get('faulty')).status).toBe(404);
    expect((await put('-x', first)).status).toBe(400);
  });

  test('is not deleted while something names it, and the refusal says what', async () => {
    await put('used', first);
    const named: string[] = [];
    for (const { kind, method, path, body } of thing.namers) {
      const id = `names-${thing.list}`;
      const made = await api.call(method, `/api/v1${path(id)}`, body('used', id));
      expect([kind, made.status]).toEqual([kind, 201]);
      named.push(`${kind} ${textOf(made, 'id')}`);
    }
    expect(detailOf(await remove('used'))).toEqual([409, `the ${thing.word} is named by ${named.join(' and ')}`]);
    expect((await get('used')).status).toBe(200);
  });

  test('is changed only under its ETag, and created only if there is none, when a caller asks for that', async () => {
    await put('tagged', first);
    expect((await put('tagged', second, { 'if-match': '"1"' })).status).toBe(200);
    expect(detailOf(await put('tagged', first, { 'if-match': '"1"' }))).toEqual([
      412,
      `${thing.word} tagged has changed: its ETag is "2"`,
    ]);
    expect((await put('tagged', first, { 'if-none-match': '*' })).status).toBe(412);
    expect((await put('nobody', first, { 'if-match': '"1"' })).status).toBe(404);
    expect((await remove('tagged', { 'if-match': '"1"' })).status).toBe(412);
    expect((await remove('tagged', { 'if-match': '"2"' })).status).toBe(204);
    expect((await put('tagged', first, { 'if-none-match': '*' })).status).toBe(201);
  });

  test('is tried before it is put: the answer says what would change, and nothing does', async () => {
    const tryIt = (body: unknown) => api.call('POST', `${at('tried')}/dry-run`, body);
    expect(await tryIt(first)).toMatchObject({ status: 200, body: { change: 'created', fields: [] } });
    expect((await get('tried')).status).toBe(404);
    const { body: made } = await put('tried', first);
    expect((await tryIt(made)).body).toEqual({ id: 'tried', change: 'unchanged', fields: [] });
    const tried = (await tryIt(second)).body;
    expect(tried).toMatchObject({ id: 'tried', change: 'updated' });
    expect(tried['fields']).toContainEqual({
      path: '/description',
      before: made['description'],
      after: null,
    });
    expect((await get('tried')).body).toEqual(made);
    expect(faultPaths(await tryIt({ ...first, id: 'other' }))).toEqual(['/id']);
  });
});

describe.each(THINGS)('$list are listed', (thing) => {
  const { put, page } = callsOf(thing);

  test('by id, in pages', async () => {
    for (const id of ['list-c', 'list-a', 'list-b'])
      await put(id, { ...thing.definitions[1], description: `the ${id} of All` });
    const all = idsOf(await page('limit=500'));
    expect(all).toEqual([...all].sort());
    const found: string[] = [];
    for (let cursor = ''; ;) {
      const answer = await page(`limit=2${cursor}`);
      expect(idsOf(answer).length).toBeLessThanOrEqual(2);
      found.push(...idsOf(answer));
      const next = answer.body['nextCursor'] as unknown as string | null;
      if (next === null) break;
      cursor = `&cursor=${encodeURIComponent(next)}`;
    }
    expect(found).toEqual(all);
    expect(found).toEqual(expect.arrayContaining(['list-a', 'list-b', 'list-c']));
    expect(faultPaths(await page('limit=0&page=2'))).toEqual(['limit', 'page']);
  });

  test('and found by a part of the id or of the description, whatever the case of its letters', async () => {
    expect(idsOf(await page('q=LIST-B+of+aLL'))).toEqual(['list-b']);
    const first = await page('q=list-&limit=2');
    expect(idsOf(first)).toEqual(['list-a', 'list-b']);
    const rest = await page(`q=list-&limit=2&cursor=${encodeURIComponent(textOf(first, 'nextCursor'))}`);
    expect([idsOf(rest), rest.body['nextCursor']]).toEqual([['list-c'], null]);
  });
});
