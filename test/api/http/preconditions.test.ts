import { expect, test } from 'vitest';
import { checkPreconditions } from '../../../src/api/http/preconditions.ts';

test('a weak tag matches nothing, and the answer says that and not that something has changed', () => {
  const check = (tags: string[]) => () =>
    checkPreconditions('schedule nightly', { 'if-match': tags }, { version: 3 });
  expect(check(['"3"'])).not.toThrow();
  expect(check(['W/"3"', '"3"'])).not.toThrow();
  expect(check(['W/"3"'])).toThrow('If-Match takes no weak tag, and W/"3" is one: send "3".');
  expect(check(['W/"2"'])).toThrow('schedule nightly has changed: its ETag is "3"');
});
