// @module-tag long
import { expect, it } from 'vitest';
import { type AnsweredRun, listRuns, runExample, serveExample, sharedDaemon } from './program.ts';
import { receiverOfTest } from '../support/of-test.ts';

const daemon = sharedDaemon();

/** `ref: status …` of each stage, in the order of the pipeline. */
function outcomesIn(lines: readonly string[]): string[] {
  return lines.map((line) => /^\S+: \w+/.exec(line)?.[0] ?? line);
}

function byRef(runs: readonly AnsweredRun[], day: string): Map<string, AnsweredRun> {
  return new Map(runs.map((run) => [String(run.key).replace(`pipeline/${day}/`, ''), run]));
}

it('the parts start when the extract has ended, and the load when all of them have', async () => {
  const receiver = await serveExample('pipeline/receiver.mjs', {});
  const submit = (...parameters: string[]) =>
    runExample('pipeline/submit.mjs', parameters, { FIRELOCK_URL: daemon.url, RECEIVER_URL: receiver.url });
  const first = submit('2026-11-20');
  expect(await first.exited).toBe(0);
  expect(outcomesIn(first.lines)).toEqual([
    'extract: succeeded',
    'transform-0: succeeded',
    'transform-1: succeeded',
    'transform-2: succeeded',
    'load: succeeded',
  ]);
  const runs = byRef(await listRuns(daemon), '2026-11-20');
  const idOf = (ref: string) => runs.get(ref)?.id;
  const parts = ['transform-0', 'transform-1', 'transform-2'];
  for (const part of parts) expect(runs.get(part)?.dependsOn).toEqual([idOf('extract')]);
  expect(runs.get('load')?.dependsOn).toEqual(parts.map(idOf));
  // 1² + 2² + … + 12²
  expect(JSON.parse(runs.get('load')?.result?.body ?? '')).toEqual({ total: 650, parts: 3, missing: 0 });

  const again = submit('2026-11-20');
  expect(await again.exited).toBe(0);
  expect(again.lines).toEqual(first.lines);
  expect(await listRuns(daemon)).toHaveLength(5);

  const damaged = submit('2026-11-21', '3', '0');
  expect(await damaged.exited).toBe(1);
  expect(damaged.lines).toContain('transform-0: failed {"error":"part 0 cannot be read"}');
  // Without 3² + 6² + 9² + 12²
  expect(damaged.lines).toContain('load: succeeded {"total":380,"parts":2,"missing":1}');
});

it('if the extract fails, no part is started, and the load gets the outcome of each', async () => {
  const receiver = await receiverOfTest((_, response) => response.writeHead(400).end('no'));
  const submit = runExample('pipeline/submit.mjs', ['2026-11-22', '2'], {
    FIRELOCK_URL: daemon.url,
    RECEIVER_URL: receiver.url,
  });
  expect(await submit.exited).toBe(1);
  expect(outcomesIn(submit.lines)).toEqual([
    'extract: failed',
    'transform-0: failed',
    'transform-1: failed',
    'load: failed',
  ]);
  expect(receiver.arrivals.map(({ path }) => path)).toEqual(['/extract', '/load']);
  const body = receiver.arrivals[1]?.body as { dependencies?: unknown } | undefined;
  expect(body?.dependencies).toMatchObject([
    { status: 'failed', error: { kind: 'dependency' } },
    { status: 'failed', error: { kind: 'dependency' } },
  ]);
});
