import { beforeAll, expect, test } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import { type Teammate, twoTeams, walked } from '../access/two-teams.ts';

const teams = twoTeams();
const { api, done } = teams;

/** From the oldest to the newest: a few of each team, and then very many of others. */
const EPISODES = ['billing.a', 'ops.a', 'billing.b', 'shared.a', 'alone'];
beforeAll(async () => {
  await api.sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at, until)
    SELECT ('019b0000-0000-7000-8000-' || lpad(to_hex(place), 12, '0'))::uuid, gen_random_uuid(), id, 'failed',
      timestamptz '2026-01-01' + place * interval '1 s', timestamptz '2026-01-01' + place * interval '1 s',
      CASE WHEN id = 'billing.a' THEN now() END
    FROM unnest(${EPISODES}::text[]) WITH ORDINALITY AS e(id, place)`;
});

const others = (count: number) => api.sql`
  INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at)
  SELECT ('019b0000-0000-7000-9000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), 'other-' || n, 'failed', now(), now()
  FROM generate_series(1, ${count}::int) AS n`;

async function schedules(who: Teammate, query = ''): Promise<string[]> {
  const page = await done(who, 'GET', `/alerts?limit=500${query}`);
  return (page['items'] as unknown as { scheduleId: string }[]).map(({ scheduleId }) => scheduleId);
}

test(
  'a team reads the episodes of its schedules and of shared ones, newest first',
  { tags: [ATTACK] },
  async () => {
    expect(await schedules('reader')).toEqual(['shared.a', 'billing.b', 'billing.a']);
    expect(await schedules('reader', '&open=true')).toEqual(['shared.a', 'billing.b']);
    expect(await schedules('ops')).toEqual(['shared.a', 'ops.a']);
    expect(await schedules('ops', '&scheduleId=ops.a')).toEqual(['ops.a']);
    expect(await schedules('ops', '&scheduleId=billing.a')).toEqual([]);
    expect(await schedules('ops', '&scheduleId=unknown')).toEqual([]);
    expect(await schedules('all')).toEqual([...EPISODES].reverse());
  },
);

test(
  'the episodes of a small team are found behind very many of others, page by page',
  { tags: [ATTACK] },
  async () => {
    await others(10_500);
    const small = ['shared.a', 'billing.b', 'billing.a'];
    expect(await schedules('reader')).toEqual(small);
    expect(await schedules('reader', '&open=true')).toEqual(small.slice(0, 2));
    expect(await walked(teams, 'reader', '/alerts?limit=1')).toHaveLength(3);
  },
);
