// @module-tag attack
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';

const read = (list: string) => readConfig({ FIRELOCK_FILE_VARIABLES: list });

test('a schedules file may use the variables that are listed, and none by default', () => {
  expect(read('REPORTS_TOKEN, hook_2')).toMatchObject({
    config: { fileVariables: ['REPORTS_TOKEN', 'hook_2'] },
  });
  expect(read('')).toMatchObject({ config: { fileVariables: [] } });
});

test('a daemon does not start with a list that names its own keys, passwords and tokens', () => {
  const own = 'configures firelock itself, and no file may use it';
  expect(read('A,FIRELOCK_SECRET_KEYS,DATABASE_URL,a-b,')).toEqual({
    faults: [
      'FIRELOCK_FILE_VARIABLES is "A,FIRELOCK_SECRET_KEYS,DATABASE_URL,a-b,"; expected: names of variables that a ' +
        `schedules file may use, separated by commas (default none); "FIRELOCK_SECRET_KEYS" ${own}; ` +
        `"DATABASE_URL" ${own}; "a-b" is not the name of a variable; "" is not the name of a variable`,
    ],
  });
});
