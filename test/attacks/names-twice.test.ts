// @module-tag attack
import { expect, test } from 'vitest';
import { readJsonBody } from '../../src/api/http/json/json-body.ts';

function faultsOf(text: string): string[] {
  const steps = readJsonBody(Buffer.from(text));
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value.faults.map(({ path, message }) => `${path} ${message}`);
  }
}

test.each([
  ['{"a":1,"a":1}', '/a'],
  ['{"a":1,"\\u0061":2}', '/a'],
  ['{"é":1,"\\u00e9":2}', '/é'],
  ['{"":1,"":2}', '/'],
  ['{"a/b~":1,"a/b~":2}', '/a~1b~0'],
  ['{"labels":{"x":"1","y":"2","x":"3"}}', '/labels/x'],
  ['{"a":[{"b":1},{"b":1,"b":2}]}', '/a/1/b'],
  ['{"items":[{"id":"a"},{"id":"b","target":{"url":1,"url":2}}]}', '/items/1/target/url'],
  ['{"payload":1,"payload":2}', '/payload'],
  ['{"items":[{"payload":1,"payload":2}]}', '/items/0/payload'],
  ['{"items":[],"items":[]}', '/items'],
])('in %s %s is named as given twice', (text, path) => {
  expect(faultsOf(text)).toEqual([`${path} is given more than once`]);
});

test.each([
  '{"a":{"a":{"a":1}}}',
  '{"a":[{"b":1},{"b":1}]}',
  '{"payload":{"a":1,"a":2}}',
  '{"result":{"a":1,"a":2},"payload":[{"b":1,"b":1}]}',
  '{"items":[{"payload":{"a":1,"a":2}},{"payload":0}]}',
  '{"a":"a","b":"\\"a\\":1,\\"a\\":2"}',
])('in %s nothing is', (text) => {
  expect(faultsOf(text)).toEqual([]);
});

test('of a thousand repeated names the answer lists a hundred', () => {
  const members = Array.from({ length: 1000 }, (_, index) => `"f${index}":0,"f${index}":1`);
  expect(faultsOf(`{${members.join()}}`)).toHaveLength(100);
});
