import { expect, test } from 'vitest';
import { firelock } from '../cli.ts';

test('options that cannot be are named, all at once, and nothing is started', async () => {
  const args = ['demo', '--seconds', '9', '--schedules', 'many', '--kill-every', '20'];
  expect(await firelock(args)).toMatchObject({
    code: 64,
    out: '',
    err:
      'firelock: --seconds is 9; expected: a whole number from 10 to 3600\n' +
      'firelock: --schedules is many; expected: a whole number from 10 to 2000\n' +
      'firelock: --kill-every 20 kills no instance within --seconds 9\n',
  });
});
