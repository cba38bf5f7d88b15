import { expect, test } from 'vitest';
import { OF_CALLERS, VARIABLES } from '../../src/config/variables.ts';
import { parseFileVariables } from '../../src/core/secrets/file-variables.ts';
import { cutIntoItems } from '../../src/schedules-file/read/cut-items.ts';
import { numberText, substitute } from '../../src/schedules-file/read/json-tree.ts';
import { readSchedulesFile } from '../../src/schedules-file/read/read-file.ts';
import { entryText } from '../../src/schedules-file/schedules-file.ts';
import { ATTACK } from '../support/runner/attack.ts';

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

const variables = (env: Record<string, string>, allowed: string[]) => ({
  env,
  allowed,
  allowedBy: 'THE LIST',
});

/** With the lines of some places. */
function read(source: string, cutAbove: number) {
  const { entries, ...rest } = readSchedulesFile(source, { variables: variables({}, []), cutAbove });
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
  const texts = '1.10 -0 1E+400 +5 007 0x1F 0o17 .5 5. -.5e3 1.e5 9007199254740993 .inf -.INF .nan'.split(' ');
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

test('variables that are listed are replaced, and can be written as text', () => {
  const listed = variables({ A: 'x${B}', B: 'y', EMPTY: '' }, ['A', 'B', 'EMPTY', 'NONE']);
  expect(substitute('a${A}$B$${A}', listed)).toEqual({ text: 'ax${B}$B${A}', faults: [] });
  expect(substitute('${EMPTY} ${NONE}', listed).faults).toEqual([
    'the environment variable EMPTY is not set, or empty',
    'the environment variable NONE is not set, or empty',
  ]);
});

test('a variable that is not listed is a fault, and its value appears nowhere', { tags: [ATTACK] }, () => {
  const read = substitute('${SECRET} ${A}', variables({ SECRET: 'value', A: 'a' }, ['A']));
  expect(read.faults).toEqual([
    'the environment variable SECRET is not in the list of those that a file may use: THE LIST',
  ]);
  expect(read.text).not.toContain('value');
});

test('variables of firelock itself are refused also where they are listed', { tags: [ATTACK] }, () => {
  for (const name of [...Object.keys(VARIABLES), ...OF_CALLERS, 'FIRELOCK_OF_A_LATER_VERSION']) {
    const said = 'configures firelock itself, and no file may use it';
    expect(parseFileVariables(`A, ${name}`)[1]).toEqual([{ entry: name, message: said }]);
    const read = substitute(`\${${name}}`, variables({ [name]: 'value' }, [name]));
    expect(read).toEqual({ text: name, faults: [`the environment variable ${name} ${said}`] });
  }
});

test(
  'a file of very many anchors and aliases is read in one walk, and each alias stands for the anchor before it',
  { tags: [ATTACK] },
  () => {
    const count = 10_000;
    const limits = Array.from({ length: count }, (_, at) => `- {id: l${at}, description: &a${at % 5_000} text ${at}}`);
    const schedules = Array.from({ length: count }, (_, at) => `- {id: s${at}, description: *a${at % 5_000}}`);
    const { entries, faults } = readSchedulesFile(
      ['limits:', ...limits, 'schedules:', ...schedules, '- {id: unknown, description: *nothing}'].join('\n'),
      { variables: variables({}, []) },
    );
    expect(faults.map(({ message }) => message)).toEqual([expect.stringContaining('nothing')]);
    // Of two anchors of one name, the later one counts.
    expect(entries.schedules[5]?.fields['description']).toBe('text 5005');
    expect(entries.schedules).toHaveLength(count + 1);
  },
);
test.each([
  ['prune: yes please\nset: s\nlimits: []', 'prune must be true or false'],
  ['prune: true\nlimits: []', 'prune needs the name of a set: `set`'],
])('%j is a fault', (text, message) => {
  const { faults } = readSchedulesFile(text, { variables: variables({}, []) });
  expect(faults).toEqual([{ line: 1, message }]);
});

test('a file with a set may say that what is not in it is deleted', () => {
  const read = readSchedulesFile('prune: true\nset: s\nlimits: []', { variables: variables({}, []) });
  expect([read.prune, read.faults]).toEqual([true, []]);
});
