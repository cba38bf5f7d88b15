import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { ROLES, isCallerName, isTokenName, mayCall } from '../../../src/core/access/roles.ts';
import {
  createToken,
  parseExpiry,
  parseTokenLines,
  splitTokenFile,
  splitTokenList,
  tokenForm,
  tokenHash,
  tokenLine,
} from '../../../src/core/access/token.ts';

const token = createToken((end) => randomInt(end));
const HASH = 'ab'.repeat(32);

test('a token has the form that scanners recognise, and ends with its CRC32', () => {
  expect(token).toMatch(/^flk_[0-9A-Za-z]{36}$/);
  const value = Array.from(token.slice(34)).reduce((sum, digit) => sum * 62 + valueOf(digit), 0);
  expect(value).toBe(crc32(token.slice(4, 34)));
  expect(tokenForm(token)).toBe('token');
  expect(createToken(() => 0)).toMatch(/^flk_0{30}/);
  expect(createToken((end) => end - 1)).toMatch(/^flk_z{30}/);
  expect(tokenHash(token).toString('hex')).toBe(createHash('sha256').update(token).digest('hex'));
});

test('a token with one wrong character, or two swapped ones, counts as mistyped', () => {
  for (let index = 4; index < token.length; index += 1) {
    const other = token[index] === 'x' ? 'y' : 'x';
    expect(tokenForm(token.slice(0, index) + other + token.slice(index + 1))).toBe('mistyped');
    const swapped = `${token.slice(0, index)}${token[index + 1] ?? ''}${token[index] ?? ''}${token.slice(index + 2)}`;
    if (swapped !== token) expect(tokenForm(swapped)).toBe('mistyped');
  }
});

test.each(['', 'flk_', token.slice(0, -1), `${token}0`, token.replace('flk_', 'FLK_'), `${token}\n`, `x${token}`])(
  'what has another form is no token: %j',
  (text) => {
    expect(tokenForm(text)).toBe('other');
  },
);

test('a line contains what the daemon has to know about a token, and is read as it was written', () => {
  for (const expiresAt of [null, Date.UTC(2030, 0, 1, 12)])
    for (const scope of [null, ['billing.'], ['billing.', 'ops-2_']]) {
      const known = { name: 'ci', role: 'operator', scope, hash: tokenHash(token), expiresAt } as const;
      const { tokens, faults } = parseTokenLines([{ text: tokenLine(known), place: 'here' }]);
      expect([faults, tokens]).toEqual([[], [known]]);
    }
});

test('lists and files may contain spaces, comments and empty entries, and their places are named', () => {
  const list = ` ci:viewer:${HASH} ,, b:admin:${HASH.toUpperCase()}:2030-01-01T00:00:00+01:00,`;
  expect(splitTokenList(list, 'L')).toEqual([
    { text: `ci:viewer:${HASH}`, place: 'L, entry 1' },
    { text: `b:admin:${HASH.toUpperCase()}:2030-01-01T00:00:00+01:00`, place: 'L, entry 3' },
  ]);
  expect(splitTokenFile(`# ours\r\n\nci:viewer:${HASH} # until June\r\n`, 'F')).toEqual([
    { text: `ci:viewer:${HASH}`, place: 'F, line 3' },
  ]);
});

test('every fault of every line is named, with its position and without its text', () => {
  const lines = [
    `ci:boss:${HASH}`,
    `ci:viewer:${token}`,
    `${token}:viewer:1234:tomorrow`,
    `firelock:admin:${HASH}`,
    `a:admin:${HASH}`,
    `b:viewer:${HASH.toUpperCase()}:2030-02-30T00:00:00Z`,
    `b:viewer:${HASH.toUpperCase()}`,
    'secret',
    ...['', '.a|', 'a.|a.', 'a b', '*'].map((scope) => `ci:viewer[${scope}]:${HASH}`),
  ];
  const { tokens, faults } = parseTokenLines(lines.map((text, index) => ({ text, place: `line ${index}` })));
  expect(tokens.map(({ name }) => name)).toEqual(['a']);
  expect(faults.splice(-5).filter((fault) => fault.includes(' (ci): its scope must be 1 to 32 '))).toHaveLength(5);
  expect(faults).toEqual([
    expect.stringMatching(/^line 0 \(ci\): its role must be one of viewer, worker, operator, admin$/),
    expect.stringMatching(/^line 1 \(ci\): it holds a token; /),
    expect.stringMatching(/^line 2: its name must be /),
    expect.stringMatching(/^line 2: its hash must be .*64 hexadecimal digits$/),
    expect.stringMatching(/^line 2: its end must be an instant/),
    expect.stringMatching(/^line 3: its name must be .*"firelock"/),
    expect.stringMatching(/^line 5 \(b\): its end must be an instant/),
    expect.stringMatching(/^line 6 \(b\): it has the same hash as line 4 \(a\)$/),
    expect.stringMatching(/^line 7: its role/),
    expect.stringMatching(/^line 7: its hash/),
  ]);
  const said = faults.join('\n');
  for (const secret of [token, HASH, '1234', 'boss', 'tomorrow', 'secret']) expect(said).not.toContain(secret);
});

test.each([
  ['2030-01-01T00:00:00Z', Date.UTC(2030, 0, 1)],
  ['2030-01-01T00:00+02:00', Date.UTC(2029, 11, 31, 22)],
  ['2030-01-01T00:00:00.250Z', Date.UTC(2030, 0, 1, 0, 0, 0, 250)],
  ['2030-01-01', undefined],
  ['2030-01-01T00:00:00', undefined],
  ['2030-02-30T00:00:00Z', undefined],
  ['2030-01-01T25:00:00Z', undefined],
  ['', undefined],
])('a token expires at %j', (text, at) => {
  expect(parseExpiry(text)).toBe(at);
});

test('a viewer and a worker may not do what the other may, an operator may do both, and an admin everything', () => {
  const open = (needed: Parameters<typeof mayCall>[1]) => ROLES.filter((role) => mayCall(role, needed));
  expect(open('viewer')).toEqual(['viewer', 'operator', 'admin']);
  expect(open('worker')).toEqual(['worker', 'operator', 'admin']);
  expect(open('operator')).toEqual(['operator', 'admin']);
  expect(open('admin')).toEqual(['admin']);
  expect(open('any')).toEqual([...ROLES]);
});

test('names are those of machines and people, and no caller can have firelock’s own', () => {
  expect(['ci', 'team-a.ci_2'].every(isTokenName)).toBe(true);
  expect(['', '-a', 'a b', 'a:b', 'firelock', 'flk_x', 'a'.repeat(64)].some(isTokenName)).toBe(false);
  expect(['ann@example.com', 'ann+x@example.com'].every(isCallerName)).toBe(true);
  expect(['', 'a, b', 'firelock', 'a\nb', 'a'.repeat(129)].some(isCallerName)).toBe(false);
});

function valueOf(digit: string): number {
  return '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'.indexOf(digit);
}
