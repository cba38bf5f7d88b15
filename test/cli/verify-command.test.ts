import { expect, test } from 'vitest';
import { SCHEDULE, sharedApi } from '../api/api.ts';
import { firelock } from './cli.ts';

const api = sharedApi();

test('verify prints a table and the violations, and exits 1 if there are any', async () => {
  const sound = await firelock(['verify', '--no-json'], { url: api.url });
  expect([sound.code, sound.err]).toEqual([0, '']);
  expect(sound.out).toMatch(/^CHECK +VIOLATIONS {2}WHAT HOLDS$/m);
  expect(sound.out).toMatch(/^oneRunForEachFire +0 {2}each fire time of a schedule has at most one run$/m);

  await api.call('PUT', '/api/v1/schedules/a', SCHEDULE);
  await api.sql`DELETE FROM schedule_versions`;
  const broken = await firelock(['verify', '--no-json'], { url: api.url });
  expect(broken.code).toBe(1);
  expect(broken.out).toMatch(/^definitionsAreThere +1 /m);
  expect(broken.out).toMatch(/^definitionsAreThere: schedule a: has no version 1$/m);
  const json = await firelock(['verify'], { url: api.url });
  expect([json.code, json.json()]).toMatchObject([1, { ok: false }]);
});
