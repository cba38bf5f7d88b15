import { expect, it } from 'vitest';
import { mailAddress, mayMailTo, parseMailDomains } from '../../../src/core/alerts/texts/mail.ts';

it.each([
  ['ops@example.com', 'ops@example.com'],
  ["o'ops+cron/1@Example.COM", "o'ops+cron/1@example.com"],
  ['ops@b\u00fccher.example', 'ops@xn--bcher-kva.example'],
  ['ops@localhost', 'ops@localhost'],
])('an address is written to in ASCII: %s', (given, written) => {
  expect(mailAddress(given)).toBe(written);
});

it.each([
  ['\u00f6ps@example.com'],
  ['ops@exa\u00a0mple.com'],
  ['ops@exa\u200bmple.com'],
  ['ops@exa\u00admple.com'],
  ['ops@\u202eexample.com'],
  ['ops@example..com'],
  ['ops@-example.com'],
  ['ops@example.com\u3000'],
  ['ops'],
  ['@example.com'],
  ['a b@example.com'],
])('is no address: %j', (given) => {
  expect(mailAddress(given)).toBeNull();
});

it('mail goes to the domains that are named, and below those with a dot; without any, everywhere', () => {
  const [domains, faults] = parseMailDomains('Example.com, .corp.example,b\u00fccher.example');
  expect(faults).toEqual([]);
  const goes = (address: string) => mayMailTo(domains, address);
  expect(
    ['a@example.com', 'a@x.corp.example', 'a@y.x.corp.example', 'a@xn--bcher-kva.example'].every(goes),
  ).toBe(true);
  expect(['a@x.example.com', 'a@corp.example', 'a@notexample.com', 'a@evilcorp.example'].some(goes)).toBe(
    false,
  );
  expect(mayMailTo([], 'a@anywhere.example')).toBe(true);
  expect(parseMailDomains('example.com,a b,')[1].map(({ entry }) => entry)).toEqual(['a b', '']);
});
