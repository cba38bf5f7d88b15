import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';

const folder = mkdtempSync(join(tmpdir(), 'firelock-tokens-'));
afterAll(() => rmSync(folder, { recursive: true }));

const HASH = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);

function file(content: string): string {
  const path = join(folder, `${Math.random()}`);
  writeFileSync(path, content);
  return path;
}

function accepted(env: Record<string, string>) {
  const read = readConfig(env);
  if ('faults' in read) throw new Error(read.faults.join('\n'));
  return read.config;
}

function faultsOf(env: Record<string, string>): string[] {
  const read = readConfig(env);
  return 'faults' in read ? read.faults : [];
}

test('tokens come from the variable and from the file', () => {
  const { apiTokens, isOpenToAnybody } = accepted({
    HOST: '0.0.0.0',
    FIRELOCK_API_TOKENS: `a:viewer:${HASH}`,
    FIRELOCK_API_TOKENS_FILE: file(`# ours\nb:admin:${OTHER}:2030-01-01T00:00:00Z\n`),
  });
  expect(apiTokens.map(({ name, role, expiresAt }) => [name, role, expiresAt])).toEqual([
    ['a', 'viewer', null],
    ['b', 'admin', Date.UTC(2030, 0, 1)],
  ]);
  expect(isOpenToAnybody).toBe(false);
});

test('every bad token is named together with the other faults, and none is shown', () => {
  const faults = faultsOf({
    PORT: 'eighty',
    HOST: '0.0.0.0',
    FIRELOCK_API_TOKENS: `a:boss:${HASH},a:viewer:hunter2,c:viewer:${HASH}`,
    FIRELOCK_API_TOKENS_FILE: file(`d:viewer:${HASH}\n`),
    FIRELOCK_TRUSTED_PROXY_CIDRS: '10.0.0.0/33',
  });
  expect(faults).toEqual([
    expect.stringMatching(/^PORT is "eighty"/),
    expect.stringMatching(/^FIRELOCK_TRUSTED_PROXY_CIDRS is "10\.0\.0\.0\/33"; expected: addresses and ranges/),
    expect.stringMatching(/^FIRELOCK_API_TOKENS, entry 1 \(a\): its role must be/),
    expect.stringMatching(/^FIRELOCK_API_TOKENS, entry 2 \(a\): its hash must be/),
    expect.stringMatching(/^FIRELOCK_API_TOKENS_FILE, line 1 \(d\): it has the same hash as .*entry 3 \(c\)$/),
  ]);
  expect(faults.join('\n')).not.toMatch(/hunter2|abab/);
});

test.each([
  ['a file that is not there', { FIRELOCK_API_TOKENS_FILE: join(folder, 'none') }, /none cannot be read$/],
  ['a file without a token', { FIRELOCK_API_TOKENS_FILE: file('# none yet\n') }, /^FIRELOCK_API_TOKENS_FILE: no token/],
  ['a list without a token', { FIRELOCK_API_TOKENS: ' , ' }, /^FIRELOCK_API_TOKENS: no token/],
])('%s stops the start: it never means that no token is needed', (_, env: Record<string, string>, fault) => {
  expect(faultsOf({ HOST: '0.0.0.0', ...env })).toEqual([expect.stringMatching(fault)]);
});

test('a daemon that answers any caller binds to loopback, unless it is told otherwise', () => {
  for (const HOST of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) {
    expect([HOST, accepted({ HOST }).isOpenToAnybody]).toEqual([HOST, false]);
  }
  for (const HOST of ['0.0.0.0', '::', '192.0.2.1', 'example.com']) {
    expect(faultsOf({ HOST })).toEqual([expect.stringMatching(/^HOST is .*firelock token create NAME/)]);
    expect(accepted({ HOST, FIRELOCK_ALLOW_ANONYMOUS: '1' }).isOpenToAnybody).toBe(true);
    expect(accepted({ HOST, FIRELOCK_API_TOKENS: `a:viewer:${HASH}` }).isOpenToAnybody).toBe(false);
    expect(accepted({ HOST, FIRELOCK_TRUSTED_PROXY_CIDRS: '10.0.0.0/8' }).isOpenToAnybody).toBe(false);
  }
});

test('a base path is for a proxy, so without tokens it is refused, unless it is said that all may call', () => {
  const FIRELOCK_BASE_PATH = '/cron';
  expect(faultsOf({ FIRELOCK_BASE_PATH })).toEqual([
    expect.stringMatching(/^FIRELOCK_BASE_PATH is \/cron, .*FIRELOCK_API_TOKENS.*FIRELOCK_ALLOW_ANONYMOUS=1/),
  ]);
  expect(faultsOf({ FIRELOCK_BASE_PATH, HOST: '0.0.0.0' })).toHaveLength(2);
  for (const [env, isOpenToAnybody] of [
    [{ FIRELOCK_ALLOW_ANONYMOUS: '1' }, true],
    [{ FIRELOCK_API_TOKENS: `a:viewer:${HASH}` }, false],
    [{ FIRELOCK_TRUSTED_PROXY_CIDRS: '10.0.0.7' }, false],
  ] as const)
    expect([env, accepted({ FIRELOCK_BASE_PATH, ...env }).isOpenToAnybody]).toEqual([env, isOpenToAnybody]);
});

test('the hosts that a request may name are names, addresses and ranges; each other entry is named', () => {
  expect(accepted({}).allowedHosts).toEqual({ names: [], ranges: [] });
  const { names, ranges } = accepted({
    FIRELOCK_ALLOWED_HOSTS: 'Cron.Internal., fire_lock-1,10.9.0.0/16,192.0.2.7,[fd00::7],fd00:1::/32',
  }).allowedHosts;
  expect(names).toEqual(['cron.internal', 'fire_lock-1']);
  expect(ranges.map(({ text, prefix }) => [text, prefix])).toEqual([
    ['10.9.0.0/16', 16],
    ['192.0.2.7', 32],
    ['fd00::7', 128],
    ['fd00:1::/32', 32],
  ]);
  for (const wrong of ['*', '*.example.com', 'a:80', 'http://a', '10.0.0', '10.0.0.0/33', 'a b', '-a', 'a..b', '']) {
    const faults = faultsOf({ FIRELOCK_ALLOWED_HOSTS: `a.example,${wrong}` });
    expect([wrong, faults]).toEqual([wrong, [expect.stringMatching(/^FIRELOCK_ALLOWED_HOSTS is /)]]);
    expect(faults[0]).toContain(`; ${JSON.stringify(wrong)} is no name of a host (without a port), and `);
  }
});

test('variables for programs that call the daemon may be in its environment', () => {
  expect(accepted({ FIRELOCK_URL: 'http://127.0.0.1:8080', FIRELOCK_TOKEN: 'x' })).toEqual(accepted({}));
});

test('the port of the metrics must differ from PORT', () => {
  expect(accepted({}).metricsPort).toBeUndefined();
  expect(accepted({ FIRELOCK_METRICS_PORT: '9464' }).metricsPort).toBe(9464);
  expect(accepted({ PORT: '0', FIRELOCK_METRICS_PORT: '0' }).metricsPort).toBe(0);
  expect(faultsOf({ FIRELOCK_METRICS_PORT: '8080' })).toEqual([expect.stringMatching(/expected: another port$/)]);
  for (const port of ['65536', '-1', 'x']) {
    expect(faultsOf({ FIRELOCK_METRICS_PORT: port })).toEqual([expect.stringMatching(/^FIRELOCK_METRICS_PORT is/)]);
  }
});

test('proxies are addresses and ranges; each wrong one is named', () => {
  const FIRELOCK_TRUSTED_PROXY_CIDRS = '10.0.0.0/8, fd00::/16,192.0.2.7';
  const { trustedProxies } = accepted({ FIRELOCK_TRUSTED_PROXY_CIDRS });
  expect(trustedProxies.map(({ prefix }) => prefix)).toEqual([8, 16, 32]);
  for (const wrong of [
    '10.0.0.0/33',
    '10.0.0/8',
    'fe80::1%eth0',
    '',
    'example.com',
    'strict',
    '10.1.2.3/8',
    '0.0.0.0/0',
    '128.0.0.0/1',
    '10.0.0.0/7',
    '::/0',
    'fd00::/15',
  ]) {
    const faults = faultsOf({ FIRELOCK_TRUSTED_PROXY_CIDRS: `10.0.0.0/8,${wrong}` });
    expect(faults).toEqual([expect.stringMatching(/^FIRELOCK_TRUSTED_PROXY_CIDRS is .*; expected: addresses/)]);
    expect(faults[0]).toContain(`; ${JSON.stringify(wrong)} `);
  }
});
