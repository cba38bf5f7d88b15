import { expect, test } from 'vitest';
import { cutIntoItems } from '../../src/schedules-file/read/cut-items.ts';
import { numberText } from '../../src/schedules-file/read/number-text.ts';
import { readSchedulesFile } from '../../src/schedules-file/read/read-file.ts';
import { substitute } from '../../src/schedules-file/read/fill-variables.ts';
import { entryText } from '../../src/schedules-file/schedules-file.ts';

const LONG = `# a comment
set: here

limits:
- id: few
  maxRunning: 1
# between
calendars:   
    - id: closed
      dates: [2090-01-01]
schedules:

  # before the first
  - id: one   # behind
    description: |
      - id: not an item

        - nor this
    cron: "*/5 * * * *"
    target:
      type: http
      headers: {a: "\${MISSING}"}

  -
    id: two
    labels: {x: 1, x: 2}
    payload: {"a":  1.0}
  - id: one
  - {id: three,
     everySeconds: 5}
other: 1
`;

/** With the lines of some places. */
function read(source: string, cutAbove: number) {
  const { entries, ...rest } = readSchedulesFile(source, { variables: {}, cutAbove });
  const all = [...entries.limits, ...entries.calendars, ...entries.schedules];
  const lines = all.map(({ lineOf }) => ['', '/id', '/target/type', '/nothing', '/everySeconds'].map(lineOf));
  return {
    ...rest,
    faults: [...rest.faults].sort((a, b) => a.line - b.line),
    entries: all.map((entry) => entryText(entry, entry.fields)),
    lines,
  };
}

test('a long file is read item by item, with the same entries, faults and lines', () => {
  expect(cutIntoItems(LONG)?.pieces.map(({ kind, firstLine }) => [kind, firstLine])).toEqual([
    ['limits', 5],
    ['calendars', 9],
    ['schedules', 14],
    ['schedules', 24],
    ['schedules', 28],
    ['schedules', 29],
  ]);
  const whole = read(LONG, Infinity);
  expect(read(LONG, 0)).toEqual(whole);
  expect(whole.faults.map(({ line }) => line)).toEqual([22, 26, 28, 31]);
  expect(whole.entries.at(-1)).toBe('{"id":"three","everySeconds":5,"labels":{"firelock.set":"here"}}');
  expect(whole.lines[2]).toEqual([14, 14, 21, 14, 14]);
});

test('a file whose parts may refer to each other, or that is not in block style, is read as a whole', () => {
  for (const source of ['schedules:\n  - &a {id: x}\n  - *a\n', 'schedules:\n  [{id: x}]\n']) {
    expect(cutIntoItems(source)).toBeNull();
    expect(read(source, 0)).toEqual(read(source, Infinity));
  }
});

test('numbers of YAML become those of JSON, with all of their digits', () => {
  const texts = [
    '1.10',
    '-0',
    '1E+400',
    '+5',
    '007',
    '0x1F',
    '0o17',
    '.5',
    '5.',
    '-.5e3',
    '1.e5',
    '9007199254740993',
    '.inf',
    '-.INF',
    '.nan',
  ];
  expect(texts.map(numberText)).toEqual([
    '1.10',
    '-0',
    '1E+400',
    '5',
    '7',
    '31',
    '15',
    '0.5',
    '5',
    '-0.5e3',
    '1e5',
    '9007199254740993',
    null,
    null,
    null,
  ]);
});

test('variables are replaced, and can be written as text', () => {
  const variables = { A: 'x${B}', B: 'y', EMPTY: '' };
  expect(substitute('a${A}$B$${A}', variables)).toEqual({ text: 'ax${B}$B${A}', missing: [] });
  expect(substitute('${EMPTY} ${NONE}', variables).missing).toEqual(['EMPTY', 'NONE']);
});
