import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { parseSmtpUrl } from '../../src/config/smtp-url.ts';
import { ATTACK } from '../support/runner/attack.ts';

const FROM = { FIRELOCK_MAIL_FROM: 'cron@example.com' };
const faultsOf = (env: Record<string, string>) => {
  const read = readConfig(env);
  return 'faults' in read ? read.faults : [];
};

describe('the URL of a mail server', () => {
  test('has ports of its own, and wants TLS for a password', () => {
    const plain = { port: 587, secure: false, requireTLS: false, trustsAny: false, auth: null };
    const auth = { user: 'me@example.com', pass: 'a b' };
    for (const [url, server] of [
      ['smtp://mail.example', { host: 'mail.example', ...plain }],
      ['smtp://[::1]:25/', { host: '::1', ...plain, port: 25 }],
      ['smtps://mail.example', { host: 'mail.example', ...plain, port: 465, secure: true }],
      ['smtp://me%40example.com:a%20b@m', { host: 'm', ...plain, requireTLS: true, auth }],
      ['smtp://me%40example.com:a%20b@m?requireTLS=false', { host: 'm', ...plain, auth }],
      [
        'smtp://m?tls.rejectUnauthorized=false&requireTLS=true',
        { host: 'm', ...plain, requireTLS: true, trustsAny: true },
      ],
    ] as const)
      expect(parseSmtpUrl(url)).toEqual({ server });
  });

  test('that is none is refused, and never repeated', { tags: [ATTACK] }, () => {
    for (const url of [
      ...['http://me:s3cret@m', 's3cret', 'smtp://', 'smtp://me:s3cret@m/path', 'smtp://me@m', 'smtp://:s3cret@m'],
      ...['smtp://me:s3cret%@m', 'smtp://me:s3cret@m?also=1', 'smtp://me:s3cret@m?requireTLS=yes'],
      'smtp://me:s3cret@m?requireTLS=true&requireTLS=false',
    ]) {
      const faults = faultsOf({ ...FROM, FIRELOCK_SMTP_URL: url });
      expect(faults).toHaveLength(1);
      expect(faults[0]).toMatch(/^FIRELOCK_SMTP_URL is not a URL of a mail server; expected: smtp:/);
      expect(faults[0]).not.toContain('s3cret');
    }
  });
});

test('a server and a sender go together', () => {
  const url = { FIRELOCK_SMTP_URL: 'smtp://m' };
  expect(readConfig({ ...url, ...FROM })).toMatchObject({ config: { mail: { from: 'cron@example.com' } } });
  expect(readConfig({})).toMatchObject({ config: { mail: null, publicUrl: null } });
  expect(faultsOf(url)).toEqual([
    'FIRELOCK_MAIL_FROM is missing, and FIRELOCK_SMTP_URL is set; expected: both, or neither',
  ]);
  expect(faultsOf(FROM)).toEqual([
    'FIRELOCK_SMTP_URL is missing, and FIRELOCK_MAIL_FROM is set; expected: both, or neither',
  ]);
});

test('a sender is an address, with or without a name', () => {
  for (const from of ['cron@example.com', 'firelock <cron@example.com>'])
    expect(faultsOf({ FIRELOCK_SMTP_URL: 'smtp://m', FIRELOCK_MAIL_FROM: from })).toEqual([]);
  for (const from of ['cron', 'a@b, c@d', 'x <a@b> y', 'x\r\nBcc: <a@b>'])
    expect(faultsOf({ FIRELOCK_SMTP_URL: 'smtp://m', FIRELOCK_MAIL_FROM: from })).toHaveLength(1);
});

test('links go below a URL that is kept without a slash at its end', () => {
  for (const [text, publicUrl] of [
    ['https://cron.example/', 'https://cron.example'],
    ['http://cron.example:8080/cron/', 'http://cron.example:8080/cron'],
  ] as const)
    expect(readConfig({ FIRELOCK_PUBLIC_URL: text })).toMatchObject({ config: { publicUrl } });
  for (const text of ['cron.example', 'ftp://a', 'https://a/?x=1', 'https://a/#x', 'https://me@a'])
    expect(faultsOf({ FIRELOCK_PUBLIC_URL: text })).toHaveLength(1);
});
