import { describe, expect, it } from 'vitest';
import { parseDatabaseUrl, readDatabaseUrl } from '../../src/config/database-url.ts';

const hosts = (url: string, env: NodeJS.ProcessEnv = {}) =>
  parseDatabaseUrl(url, env)?.hosts.map(({ name, port }) => `${name} ${port}`);

describe('the URL of a database', () => {
  it.each([
    ['postgres://u:p@h/db', ['h 5432']],
    ['postgresql://h:6000/db', ['h 6000']],
    ['postgres://u:p@h1:5432,h2:5433/db', ['h1 5432', 'h2 5433']],
    ['postgres://h1:6000,h2/db', ['h1 6000', 'h2 5432']],
    ['postgres://u@[::1]:5433,[2001:db8::7]/db', ['::1 5433', '2001:db8::7 5432']],
    ['postgres://%2Frun%2Fpostgresql:5433/db', ['/run/postgresql 5433']],
    ['postgres:///db?host=/run/postgresql', ['/run/postgresql 5432']],
    ['postgres:///db?host=h1,h2&port=6000', ['h1 6000', 'h2 6000']],
    ['postgres:///db', ['localhost 5432']],
  ])('names hosts and ports: %s', (url, expected) => {
    expect(hosts(url)).toEqual(expected);
  });

  it('takes missing parts from the environment', () => {
    const env = { PGHOST: '/tmp', PGPORT: '6000' };
    expect(hosts('postgres:///db', env)).toEqual(['/tmp 6000']);
    expect(hosts('postgres://h:5433/db', env)).toEqual(['h 5433']);
  });

  it('passes on parameters for the server, and decodes names and passwords', () => {
    expect(
      parseDatabaseUrl('postgres://a%40b:p%2C%3A@h1,h2/db?target_session_attrs=primary&search_path=x%20y', {}),
    ).toMatchObject({
      user: 'a@b',
      password: 'p,:',
      database: 'db',
      search: '?search_path=x+y',
      mustWrite: true,
    });
    expect(parseDatabaseUrl('postgres://u:p@ss@h/db?target_session_attrs=any', {})).toMatchObject({
      password: 'p@ss',
      database: 'db',
      search: '',
      mustWrite: false,
    });
  });

  it.each([
    'mysql://h/db',
    'host=h dbname=db',
    'postgres://h:0/db',
    'postgres://h:65536/db',
    'postgres://h:port/db',
    'postgres://h1,,h2/db',
    'postgres://h1:5432:5433/db',
    'postgres://::1/db',
    'postgres://u:%ZZ@h/db',
    'postgres://h/db?target_session_attrs=standby',
    'postgres://h/db?target_session_attrs=read-only',
  ])('is refused where it cannot be used: %s', (url) => {
    expect(parseDatabaseUrl(url, {})).toBe(null);
  });

  it('names the part that is not encoded as it should be, and decodes the name of the database', () => {
    expect(parseDatabaseUrl('postgres://h/caf%C3%A9%20%2F%25', {})?.database).toBe('café /%');
    expect(parseDatabaseUrl('postgres://h', {})?.database).toBe(undefined);
    for (const [text, parameter] of [
      ['postgres://u:50%@h/db', 'password'],
      ['postgres://u%:p@h/db', 'user'],
      ['postgres://h/50%', 'database'],
      ['postgres://h/db?target_session_attrs=standby', 'target_session_attrs'],
    ] as const)
      expect(readDatabaseUrl(text, {})).toMatchObject({ faults: [{ parameter }] });
  });
});

const urlWith = (query: string) => `postgres://u:p@h/db?${query}`;
const tlsOf = (query: string, env: NodeJS.ProcessEnv = {}) => parseDatabaseUrl(urlWith(query), env)?.tls;
const faultsOf = (query: string) => {
  const read = readDatabaseUrl(urlWith(query), {});
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
  expect(parseDatabaseUrl(urlWith('sslmode=require&options=-c%20x'), {})?.search).toBe('?options=-c+x');
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
  expect(faultsOf('sslmode=yes&sslcrl=/c&sslcert=/c&schema=x&connection_limit=5&gssencmode=require')).toEqual([
    expect.stringMatching(/^sslmode must be one of/),
    'sslkey must be given too',
    expect.stringMatching(/^sslcrl is not supported/),
    expect.stringMatching(/^gssencmode must not be require/),
    expect.stringMatching(/^schema .*: write search_path$/),
    expect.stringMatching(/^connection_limit .*: set FIRELOCK_DATABASE_POOL$/),
  ]);
  expect(faultsOf('ssl=maybe')).toEqual([expect.stringMatching(/^ssl must be true or false/)]);
  expect(faultsOf('ssl=true&sslmode=disable')).toEqual([expect.stringMatching(/^ssl asks for TLS, and/)]);
});

it('strings are read as hosts of PostgreSQL offer them: what is not needed is ignored, and said', () => {
  const read = (query: string) => {
    const { tls, search, ignored } = parseDatabaseUrl(urlWith(query), {}) ?? {};
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
