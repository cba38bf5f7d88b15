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
      parseDatabaseUrl(
        'postgres://a%40b:p%2C%3A@h1,h2/db?target_session_attrs=primary&search_path=x%20y',
        {},
      ),
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
