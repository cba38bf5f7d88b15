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
  expect(parseDatabaseUrl(url('sslmode=require&options=-c%20x'), {})?.rest).toBe('/db?options=-c+x');
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
  expect(faultsOf('sslmode=yes&ssl=true&channel_binding=require&sslcert=/c')).toEqual([
    expect.stringMatching(/^ssl is not supported/),
    expect.stringMatching(/^channel_binding is not supported/),
    expect.stringMatching(/^sslmode must be one of/),
    'sslkey must be given too',
  ]);
});
