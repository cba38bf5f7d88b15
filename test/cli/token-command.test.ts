import { expect, test } from 'vitest';
import { parseTokenLines, tokenForm, tokenHash } from '../../src/core/access/token.ts';
import { firelock } from './cli.ts';

const now = Date.UTC(2030, 0, 1);

async function run(...args: string[]) {
  const { code, out, err } = await firelock(['token', 'create', ...args], { now });
  return { code, printed: out.split('\n').slice(0, -1), explained: err.split('\n').slice(0, -1) };
}

test('prints a new token, and the line that the daemon needs for it', async () => {
  for (const [args, expiresAt] of [
    [['ci', '--role', 'operator'], null],
    [['--role=operator', '--expires=2030-01-01T01:00:00+00:30', 'ci'], now + 1_800_000],
  ] as const) {
    const { code, printed } = await run(...args);
    const [token = '', line = ''] = printed;
    expect([code, printed.length, tokenForm(token)]).toEqual([0, 2, 'token']);
    expect(parseTokenLines([{ text: line, place: '' }])).toEqual({
      tokens: [{ name: 'ci', role: 'operator', scope: null, hash: tokenHash(token), expiresAt }],
      faults: [],
    });
  }
  const again = () => run('ci', '--role', 'viewer');
  expect((await again()).printed).not.toEqual((await again()).printed);
});

test('names every fault at once, and then makes no token', async () => {
  const { code, printed, explained } = await run(
    '-x'.slice(1),
    'y',
    '--role',
    'boss',
    '--expires',
    'tomorrow',
  );
  expect([code, printed]).toEqual([64, []]);
  expect(explained).toEqual([
    expect.stringMatching(/give only one NAME/),
    expect.stringMatching(/--role must be one of viewer, worker, operator, admin$/),
    expect.stringMatching(/--expires must be an instant/),
  ]);
  expect((await run()).explained).toEqual([
    expect.stringMatching(/NAME must be/),
    expect.stringMatching(/--role must/),
  ]);
  expect((await run('firelock', '--role', 'admin')).explained).toEqual([
    expect.stringMatching(/NAME must be .*"firelock"/),
  ]);
  expect((await run('ci', '--role', 'admin', '--expires', '2030-01-01T00:00:00Z')).explained).toEqual([
    expect.stringMatching(/--expires must be in the future$/),
  ]);
  expect(await run('ci', '--rôle', 'admin')).toMatchObject({ code: 64, printed: [] });
});
