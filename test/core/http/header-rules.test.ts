import { describe, expect, test } from 'vitest';
import { headerFault } from '../../../src/core/http/header-rules.ts';

describe('headerFault', () => {
  test.each([
    ['authorization', 'Bearer abc'],
    ['Content-Type', 'text/plain; charset=utf-8'],
    ['x-empty', ''],
    ['x_under_score', 'x'],
    ['X-Forwarded-Proto', 'https'],
    ['x-run', '{{runId}} of {{scheduleId}}'],
    ['x-latin', 'caf\u00e9'],
    ['cents', '5'],
    ["!#$%&'*+-.^_`|~", 'a\tb'],
  ])('lets %s: %s pass', (name, value) => {
    expect(headerFault(name, value)).toBeNull();
  });

  test.each(['', 'a b', 'a:b', 'caf\u00e9', 'a\r\nb', '(x)'])('refuses the name %j', (name) => {
    expect(headerFault(name, 'x')).toBe('is not a header name');
  });

  test.each(
    (
      'webhook-id Webhook-Signature webhook-anything Idempotency-Key ce-id CE-custom traceparent ' +
      'User_Agent Host connection keep-alive Proxy-Authorization te Trailer transfer-encoding upgrade ' +
      'Content-Length expect HTTP2-Settings Content-Encoding content-range Proxy-Connection ' +
      'Idempotency_Key WEBHOOK_ID Transfer_Encoding content_length ce_id'
    ).split(' '),
  )('keeps %s for itself', (name) => {
    expect(headerFault(name, 'x')).toBe('is a header that users cannot set');
  });

  test('lets a call set User-Agent, and a connection Host as well; a connection sets no Content-Type', () => {
    expect(headerFault('User-Agent', 'jobs/{{runId}}')).toBeNull();
    expect(headerFault('User-Agent', 'jobs', 'connection')).toBeNull();
    expect(headerFault('Host', 'jobs.example:8443', 'connection')).toBeNull();
    for (const value of ['', 'a b', 'a/b', 'http://a', 'u@a', 'a:b'])
      expect(headerFault('Host', value, 'connection')).toBe('is not a host, with a port or without one');
    for (const name of ['Content-Type', 'content_type'])
      expect(headerFault(name, 'text/plain', 'connection')).toMatch(/^is a header that no connection sets/);
    expect(headerFault('Idempotency-Key', 'x', 'connection')).toBe('is a header that users cannot set');
  });

  test.each(['a\r\nb', 'a\nb', 'a\0b', '\u007f', '\u20ac', '\ud83d\ude00'])('refuses the value %j', (value) => {
    expect(headerFault('x-a', value)).toBe('has a value with characters that no header can carry');
  });

  test.each([' a', 'a ', '\ta', 'a\u00a0'])('refuses the white space around %j', (value) => {
    expect(headerFault('x-a', value)).toBe('has a value that begins or ends with white space');
  });
});
