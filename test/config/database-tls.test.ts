import { expect, it } from 'vitest';
import { parseDatabaseUrl, readDatabaseUrl } from '../../src/config/database-url.ts';

const url = (query: string) => `postgres://u:p@h/db?${query}`;
const tlsOf = (query: string, env: NodeJS.ProcessEnv = {}) => parseDatabaseUrl(url(query), env)?.tls;
const faultsOf = (query: string) => {
  const read = readDatabaseUrl(url(query), {});
  return 'faults' in read ? read.faults.map(({ parameter, message }) => `${parameter} ${message}`) : [];
};

it('TLS parameters of a URL have the meaning that libpq gives them', () => {
  const none = { rootCertificate: null, own: null };
  expect(tlsOf('')).toEqual({ mode: 'disable', ...none });
  for (const mode of ['disable', 'prefer', 'require', 'verify-full'])
    expect(tlsOf(`sslmode=${mode}`)).toEqual({ mode, ...none });
  expect(tlsOf('sslmode=verify-ca&sslrootcert=/ca')).toEqual({
    ...none,
    mode: 'verify-ca',
    rootCertificate: '/ca',
  });
  expect(tlsOf('sslmode=require&sslrootcert=/ca')).toEqual({
    ...none,
    mode: 'verify-ca',
    rootCertificate: '/ca',
  });
  expect(tlsOf('sslrootcert=system')).toEqual({ mode: 'verify-full', ...none });
  expect(tlsOf('sslmode=require&sslcert=/c&sslkey=/k')).toEqual({
    ...{ ...none, mode: 'require', own: { certificate: '/c', key: '/k' } },
  });
  expect(tlsOf('', { PGSSLMODE: 'verify-full', PGSSLROOTCERT: '/ca' })).toEqual({
    ...{ ...none, mode: 'verify-full', rootCertificate: '/ca' },
  });
  // The server is told nothing of it.
  expect(parseDatabaseUrl(url('sslmode=require&options=-c%20x'), {})?.search).toBe('?options=-c+x');
});

it('parameters that firelock does not follow are refused by name, all at once', () => {
  expect(faultsOf('sslmode=allow')).toEqual([
    'sslmode must be one of disable, prefer, require, verify-ca, verify-full',
  ]);
  expect(faultsOf('sslmode=verify-ca')).toEqual([expect.stringMatching(/^sslrootcert must name a file/)]);
  expect(faultsOf('sslrootcert=/ca')).toEqual([expect.stringMatching(/^sslrootcert does nothing without/)]);
  expect(faultsOf('sslmode=prefer&sslrootcert=/ca')).toEqual([
    expect.stringMatching(/^sslrootcert does nothing without/),
  ]);
  expect(faultsOf('sslmode=require&sslrootcert=system')).toEqual([
    expect.stringMatching(/^sslrootcert goes, as system, with/),
  ]);
  expect(faultsOf('sslmode=yes&sslcrl=/c&sslcert=/c&schema=x&connection_limit=5&gssencmode=require')).toEqual(
    [
      expect.stringMatching(/^sslmode must be one of/),
      'sslkey must be given too',
      expect.stringMatching(/^sslcrl is not supported/),
      expect.stringMatching(/^gssencmode must not be require/),
      expect.stringMatching(/^schema .*: write search_path$/),
      expect.stringMatching(/^connection_limit .*: set FIRELOCK_DATABASE_POOL$/),
    ],
  );
  expect(faultsOf('ssl=maybe')).toEqual([expect.stringMatching(/^ssl must be true or false/)]);
  expect(faultsOf('ssl=true&sslmode=disable')).toEqual([expect.stringMatching(/^ssl asks for TLS, and/)]);
});

it('strings are read as hosts of PostgreSQL offer them: what is not needed is ignored, and said', () => {
  const read = (query: string) => {
    const { tls, search, ignored } = parseDatabaseUrl(url(query), {}) ?? {};
    return [tls?.mode, search, ignored?.map(({ parameter }) => parameter)];
  };
  expect(read('sslmode=require&channel_binding=require')).toEqual(['require', '', ['channel_binding']]);
  expect(read('ssl=true&application_name=x')).toEqual(['require', '?application_name=x', []]);
  expect(read('ssl=1&sslmode=verify-full')).toEqual(['verify-full', '', []]);
  expect(read('ssl=false')).toEqual(['disable', '', []]);
  expect(read('pgbouncer=true&pool_timeout=3&statement_cache_size=0')).toEqual([
    ...['disable', ''],
    ['pgbouncer', 'pool_timeout', 'statement_cache_size'],
  ]);
  expect(
    read('keepalives=1&keepalives_idle=30&gssencmode=disable&load_balance_hosts=random&connect_timeout=10'),
  ).toEqual([
    ...['disable', ''],
    ['keepalives', 'keepalives_idle', 'gssencmode', 'load_balance_hosts', 'connect_timeout'],
  ]);
});
