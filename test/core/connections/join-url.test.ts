import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { joinBelow, pathFault } from '../../../src/core/connections/join-url.ts';
import { renderTemplate } from '../../../src/core/http/template.ts';
import { createRandom } from '../../chaos/random.ts';
import { ATTACK } from '../../support/runner/attack.ts';

describe('a path below a connection', () => {
  test.each([
    ['https://a.example', '', '/'],
    ['https://a.example', '/', '/'],
    ['https://a.example/', '/x', '/x'],
    ['https://a.example/api', '', '/api'],
    ['https://a.example/api', '/', '/api/'],
    ['https://a.example/api', '/x', '/api/x'],
    ['https://a.example/api', '?x=1', '/api?x=1'],
    ['https://a.example/api/', '', '/api/'],
    ['https://a.example/api/', '/', '/api/'],
    ['https://a.example/api/', '/x/', '/api/x/'],
    ['https://a.example/api/', '?x=1', '/api/?x=1'],
    ['https://a.example/a/b', '/c?d=e', '/a/b/c?d=e'],
    ['https://a.example/api', '/x:y@z/a..b/.c/d./...', '/api/x:y@z/a..b/.c/d./...'],
    ['https://a.example/api', '/m%C3%BCll/%20/100%25', '/api/m%C3%BCll/%20/100%25'],
    ['https://a.example/api', '/müll', '/api/m%C3%BCll'],
  ])('%s and %j lead to %s', (base, path, expected) => {
    expect(pathFault(path)).toBeNull();
    expect(joinBelow(base, path)).toEqual({ origin: 'https://a.example', path: expected });
  });

  test('has any query, for that leads nowhere', () => {
    const query = '?to=https://b.example/../x&a=%2F%2e%2e&b=%0A&c=?&d=ä;..';
    expect(joinBelow('https://a.example/api', `/x${query}`).path).toBe(
      '/api/x?to=https://b.example/../x&a=%2F%2e%2e&b=%0A&c=?&d=%C3%A4;..',
    );
  });

  test('keeps a port, and an address as its host', () => {
    expect(joinBelow('http://[::1]:8080/api', '/x')).toEqual({ origin: 'http://[::1]:8080', path: '/api/x' });
  });

  test('may contain templates, whose values are encoded', () => {
    expect(pathFault('/runs/{{runName}}?of={{scheduleId}}')).toBeNull();
    const rendered = renderTemplate('/runs/{{runName}}?of={{scheduleId}}', VALUES, encodeURIComponent);
    expect(joinBelow('https://a.example/api', rendered).path).toBe(
      '/api/runs/nightly%402026-11-20T09%3A00%3A00.000Z?of=',
    );
  });
});

describe('a path that may lead out of its connection', { tags: [ATTACK] }, () => {
  test.each([
    ['x', 'does not begin with a slash'],
    ['https://b.example/x', 'does not begin with a slash'],
    ['@b.example/', 'does not begin with a slash'],
    [':8080/', 'does not begin with a slash'],
    ['//b.example/x', 'contains two slashes in a row'],
    ['/x//y', 'contains two slashes in a row'],
    ['/x/../../y', 'contains a dot segment'],
    ['/..', 'contains a dot segment'],
    ['/./x', 'contains a dot segment'],
    ['/%2e%2E/x', 'contains a dot segment'],
    ['/.%2E', 'contains a dot segment'],
    ['/%252e./x', 'contains a dot segment'],
    ['/%25252E%2e', 'contains a dot segment'],
    ['/..;/x', 'contains a dot segment'],
    ['/..%20/x', 'contains a dot segment'],
    ['/%20..%2520', 'contains a dot segment'],
    ['/..%20;x/y', 'contains a dot segment'],
    ['/..%C2%A0/x', 'contains a dot segment'],
    ['/\uff0e\uff0e/x', 'contains a dot segment'],
    ['/%EF%BC%8E./x', 'contains a dot segment'],
    ['/\u2025/x', 'contains a dot segment'],
    ['/x\uff0f..\uff0fy', 'contains a dot segment'],
    ['/%2e%2e;a=b?x', 'contains a dot segment'],
    ['/..%3b/x', 'contains a dot segment'],
    ['/..%2fx', 'contains an encoded slash or backslash'],
    ['/x%5Cy', 'contains an encoded slash or backslash'],
    ['/x%252Fy', 'contains an encoded slash or backslash'],
    ['\\\\b.example', 'contains a backslash'],
    ['/x\\..\\y', 'contains a backslash'],
    ['/x#y', 'contains a fragment (#)'],
    ['/x?y#z', 'contains a fragment (#)'],
    [' /x', 'contains white space or a control character'],
    ['/x?y z', 'contains white space or a control character'],
    ['/.\t./x', 'contains white space or a control character'],
    ['/.\n.', 'contains white space or a control character'],
    ['/x\0', 'contains white space or a control character'],
    ['/x\u00a0', 'contains white space or a control character'],
    ['/x%00', 'contains an encoded control character'],
    ['/x%0d%0aHost:b', 'contains an encoded control character'],
    ['/%c0%ae%c0%ae/x', 'contains a percent sign that begins no character in UTF-8'],
    ['/%u002e', 'contains a percent sign that begins no character in UTF-8'],
    ['/100%', 'contains a percent sign that begins no character in UTF-8'],
  ])('is refused: %j', (path, fault) => {
    expect(pathFault(path)).toBe(fault);
    expect(() => joinBelow('https://a.example/api', path)).toThrow(new TypeError(`the path ${fault}`));
  });

  test.each([
    ['/{{scheduleId}}/x', '', 'contains two slashes in a row'],
    ['/.{{scheduleId}}/x', '', 'contains a dot segment'],
    ['/.{{scheduleId}}/x', '.', 'contains a dot segment'],
    ['/{{scheduleId}}', '..', 'contains a dot segment'],
    ['/{{scheduleId}}', '../x', 'contains an encoded slash or backslash'],
    ['/%2{{scheduleId}}', 'f', 'contains an encoded slash or backslash'],
  ])('is refused once its templates are filled in: %s with %j', (path, scheduleId, fault) => {
    const rendered = renderTemplate(path, { ...VALUES, scheduleId }, encodeURIComponent);
    expect(() => joinBelow('https://a.example/api', rendered)).toThrow(`the path ${fault}`);
  });

  test.each([
    'ftp://a.example',
    'https://user:secret@a.example',
    'https://a.example?x',
    'https://a.example#x',
    'a.example',
  ])('is refused below what is no base: %s', (base) => {
    expect(() => joinBelow(base, '/x')).toThrow(TypeError);
  });

  test.each([1, 2, 3])('is refused, or leads below its base, however it is made up (seed %i)', (seed) => {
    const random = createRandom(seed, 'hostile paths');
    const [accepted, wrong]: [string[], string[]] = [[], []];
    for (let i = 0; i < 20_000; i++) {
      const base = random.pick(BASES);
      const length = Math.floor(random.between(0, 8));
      const path = random.pick(['', '/']) + Array.from({ length }, () => random.pick(PIECES)).join('');
      const joined = joinedOrNull(base, path);
      if (joined !== null) accepted.push(path);
      if ((joined === null) !== (pathFault(path) !== null)) wrong.push(path);
      else if (joined !== null && !leadsBelow(base, joined)) wrong.push(path);
    }
    expect(wrong).toEqual([]);
    expect(accepted.length).toBeGreaterThan(1_000);
  });
});

const VALUES = {
  runId: '0192f0c4-1c00-7abc-8def-0123456789ab',
  runName: 'nightly@2026-11-20T09:00:00.000Z',
  scheduleId: null,
  scheduledFor: Date.UTC(2026, 10, 20, 9),
  attempt: 3,
};

const BASES = ['https://a.example', 'http://a.example:8080/', 'https://a.example/api', 'https://a.example/v1/api/'];

const PIECES = [
  ...'/ . .. // \\ % 25 2e 2f 5c %2e %2E %2f %5C %25 %252e ; @'.split(' '),
  ...[':', '?', '#', '\t', '\n', ' ', 'x', 'y', 'api', 'b.example', 'https:', '%00', '%c0%ae', '{{', '}}', 'ä', '|'],
];

function leadsBelow(base: string, joined: ReturnType<typeof joinBelow>): boolean {
  const root = new URL(base);
  const url = new URL(joined.origin + joined.path);
  const above = root.pathname.replace(/\/$/, '');
  const isBelow = url.pathname === above || url.pathname.startsWith(`${above}/`);
  // As the most lenient of servers would have it.
  const first = resolved(url.pathname).slice(0, segmentsOf(above).length);
  return url.origin === root.origin && isBelow && isDeepStrictEqual(first, segmentsOf(above));
}

function joinedOrNull(base: string, path: string): ReturnType<typeof joinBelow> | null {
  try {
    return joinBelow(base, path);
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return null;
  }
}

/** The segments of a path that is decoded until nothing changes, without parameters, and with dots resolved. */
function resolved(pathname: string): string[] {
  let text = pathname;
  for (let before = ''; before !== text;) {
    before = text;
    text = text.replace(/%[0-9a-f]{2}/gi, (whole) => String.fromCharCode(parseInt(whole.slice(1), 16)));
  }
  const segments: string[] = [];
  for (const segment of segmentsOf(text.replaceAll('\\', '/'))) {
    const [name = ''] = segment.split(';', 1);
    if (name === '..') segments.pop();
    else if (name !== '.') segments.push(segment);
  }
  return segments;
}

function segmentsOf(pathname: string): string[] {
  return pathname.split('/').filter((segment) => segment !== '');
}
