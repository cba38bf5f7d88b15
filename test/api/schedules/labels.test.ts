import { expect, test } from 'vitest';
import { SCHEDULE, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();
const at = (id: string) => `/api/v1/schedules/${id}`;

test('a label whose key has a colon is refused wherever it is sent, since no filter could name it', async () => {
  const labels = { 'k8s:app': 'x', fine: 'a:b' };
  const put = await api.call('PUT', at('colon'), { ...SCHEDULE, labels });
  expect([put.status, faultPaths(put)]).toEqual([400, ['/labels/k8s:app']]);
  await api.call('PUT', at('colon'), SCHEDULE);
  const patched = await api.call('PATCH', at('colon'), { labels });
  expect([patched.status, faultPaths(patched)]).toEqual([400, ['/labels/k8s:app']]);
  const batch = await api.call('POST', '/api/v1/schedules/batch', {
    items: [{ ...SCHEDULE, id: 'x', labels }],
  });
  expect([batch.status, faultPaths(batch)]).toEqual([400, ['/items/0/labels/k8s:app']]);
});

test('one that was stored before can be read, outlives other edits, and can be taken away', async () => {
  await api.call('PUT', at('stored'), { ...SCHEDULE, labels: { team: 'a' } });
  await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{labels,k8s:app}', '"x"')
    WHERE schedule_id = 'stored'`;
  expect((await api.call('GET', at('stored'))).body['labels']).toEqual({ team: 'a', 'k8s:app': 'x' });
  const edited = await api.call('PATCH', at('stored'), { labels: { team: 'b' } });
  expect(edited.body['labels']).toEqual({ team: 'b', 'k8s:app': 'x' });
  const taken = await api.call('PATCH', at('stored'), { labels: { 'k8s:app': null } });
  expect([taken.status, taken.body['labels']]).toEqual([200, { team: 'b' }]);
});

test('a search ignores the case of letters beyond ASCII', async () => {
  await api.call('PUT', at('umlaut'), { ...SCHEDULE, description: 'Monatliche PRÜFUNG' });
  const { body } = await api.call('GET', `/api/v1/schedules?q=${encodeURIComponent('prüf')}`);
  expect((body['items'] as unknown as { id: string }[]).map(({ id }) => id)).toEqual(['umlaut']);
});
