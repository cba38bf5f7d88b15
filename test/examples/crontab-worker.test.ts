import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, startApi } from '../api/api.ts';
import { firelock } from '../cli/cli.ts';
import { until } from '../support/until.ts';
import { runExample } from './program.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

test('an imported crontab runs: commands with their environment and input, and what they printed', async () => {
  const crontab = [
    'GREETING="good morning"',
    '0 0 29 2 * read line; echo "$GREETING, $line 100\\%"%first%second',
    '0 0 29 2 * echo broken >&2; exit 3',
  ].join('\n');
  const file = await firelock(['import-crontab', '-'], { input: crontab });
  expect((await firelock(['apply', '-'], { url: api.url, input: file.out })).code).toBe(2);
  const { body } = await api.call('GET', '/api/v1/schedules');
  const ids = (body['items'] as unknown as { id: string }[]).map(({ id }) => id);

  const worker = runExample('crontab-worker.js', [], { FIRELOCK_URL: api.url });
  await worker.said(/runs the commands of crontab/);
  const ends = await Promise.all(
    ids.map(async (id) => {
      const fired = await api.call('POST', `/api/v1/schedules/${id}/fire`);
      const { id: runId } = fired.body as unknown as { id: string };
      return until(async () => {
        const run = (await api.call('GET', `/api/v1/runs/${runId}`)).body as unknown as End;
        return ['succeeded', 'failed'].includes(run.status) ? run : null;
      });
    }),
  );
  const [failed, succeeded] = ends.sort((a, b) => (a.status < b.status ? -1 : 1));
  expect(succeeded?.status).toBe('succeeded');
  expect(JSON.parse(succeeded?.result.body ?? '')).toEqual({ output: 'good morning, first 100%\n' });
  expect(failed).toMatchObject({
    status: 'failed',
    error: { kind: 'reported', message: 'exit 3: broken\n' },
  });
  worker.signal('SIGTERM');
  expect(await worker.exited).toBe(0);
});

interface End {
  status: string;
  result: { body: string };
  error: { kind: string; message: string } | null;
}
