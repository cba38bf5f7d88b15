import { gzipSync } from 'node:zlib';

/** A request that is to be refused. */
export interface Attack {
  name: string;
  /** What may be answered. */
  statuses: number[];
  /** In place of the parameter of the path, percent-encoded as it is to be sent. */
  id?: string;
  /** After the path. */
  suffix?: string;
  method?: string;
  body?: string | Buffer;
  headers?: string[];
  /** Bodies that a route may take to be absent are no attack on it. */
  isEmpty?: boolean;
}

const JSON_TYPE = 'Content-Type: application/json';

/** On any route. */
export const ON_ANY: Attack[] = [
  { name: 'a parameter that no route has', suffix: '?nope=1', statuses: [400] },
  { name: '__proto__ as a parameter', suffix: '?__proto__=1', statuses: [400] },
  { name: 'constructor as a parameter', suffix: '?constructor[prototype]=1', statuses: [400] },
  { name: 'a percent sign alone in the query', suffix: '?nope=%', statuses: [400] },
  { name: 'NUL in the query', suffix: '?nope=%00', statuses: [400] },
  { name: 'no UTF-8 in the query', suffix: '?%ff=%c3%28', statuses: [400] },
  { name: 'two thousand parameters', suffix: `?${'a=&'.repeat(2000)}`, statuses: [400] },
  { name: 'a query of 17 KiB', suffix: `?q=${'x'.repeat(17 * 1024)}`, statuses: [431] },
  { name: 'a step up', suffix: '/..%2f..%2f..%2fetc%2fpasswd', statuses: [400, 404, 405] },
  { name: 'a step that is no UTF-8', suffix: '/%ff', statuses: [400] },
  { name: 'a slash at the end', suffix: '/', statuses: [404] },
  { name: 'a header of 17 KiB', headers: [`X-Bomb: ${'x'.repeat(17 * 1024)}`], statuses: [431] },
  { name: 'two hundred headers', headers: Array.from(Array(200), (_, n) => `X-${n}: 1`), statuses: [431] },
  { name: 'two Hosts', headers: ['Host: elsewhere'], statuses: [400] },
  { name: 'a header without a colon', headers: ['nonsense'], statuses: [400] },
  { name: 'a header folded', headers: ['X-Folded: a', ' b'], statuses: [400] },
  { name: 'NUL in a header', headers: ['X-Nul: a\0b'], statuses: [400] },
  { name: 'an Expect that nobody knows', headers: ['Expect: miracles'], statuses: [417] },
  { name: 'TRACE', method: 'TRACE', statuses: [405] },
  { name: 'PROPFIND', method: 'PROPFIND', statuses: [405] },
  { name: 'a method that does not exist', method: 'STEAL', statuses: [400] },
];

/** On routes that have a parameter in their path. */
export const ON_IDS: Attack[] = [
  { name: 'NUL as an id', id: '%00', statuses: [400] },
  { name: 'NUL in an id', id: 'a%00b', statuses: [400] },
  { name: 'a percent sign alone as an id', id: '%ZZ', statuses: [400] },
  { name: 'an id that is no UTF-8', id: '%c3%28', statuses: [400] },
  { name: 'an overlong slash as an id', id: '..%c0%af..', statuses: [400] },
  { name: 'a way up as an id', id: '..%2f..%2fetc', statuses: [400] },
  { name: 'SQL as an id', id: "';DROP%20TABLE%20runs;--", statuses: [400] },
  { name: 'markup as an id', id: '%3Cscript%3E', statuses: [400] },
  { name: '__proto__ as an id', id: '__proto__%20', statuses: [400] },
  { name: 'an id of five thousand letters', id: 'x'.repeat(5000), statuses: [400] },
  { name: 'right-to-left marks as an id', id: '%E2%80%AE%E2%80%AE', statuses: [400] },
  { name: 'white space as an id', id: '%20%0d%0a', statuses: [400] },
];

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const CHUNKED = 'Transfer-Encoding: chunked';
const sent = (name: string, status: number, headers: string[], body?: string | Buffer): Attack => ({
  ...{ name, statuses: [status], headers: [JSON_TYPE, ...headers], ...(body !== undefined && { body }) },
});
const json = (name: string, body: string | Buffer) => sent(name, 400, [], body);
const typed = (type: string): Attack => ({
  ...{ name: `the content type ${JSON.stringify(type)}`, body: '{}' },
  ...{ headers: [`Content-Type: ${type}`], statuses: [415] },
});

/** On routes that take a body. */
export const ON_BODIES: Attack[] = [
  { ...json('no body', ''), isEmpty: true },
  json('white space', ' \r\n'),
  json('an array', '[]'),
  json('an array of objects', '[{}]'),
  json('a string', '"{}"'),
  json('a number', '1e400'),
  json('null', 'null'),
  json('true', 'true'),
  json('half an object', '{"nope":'),
  json('two objects', '{}{}'),
  json('a comment', '{/* */}'),
  json('NaN', '{"nope":NaN}'),
  json('a byte order mark and nothing', Buffer.from([0xef, 0xbb, 0xbf])),
  json('UTF-16', Buffer.from('\ufeff{}', 'utf16le')),
  json('no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])),
  json('an overlong NUL', Buffer.from([0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d])),
  json('a gzip bomb without its header', gzipSync(Buffer.alloc(1024 * 1024))),
  json('a field that no call has', '{"nope":1}'),
  json('__proto__', '{"__proto__":{"admin":true}}'),
  json('__proto__ with an escape', '{"__pro\\u0074o__":{"admin":true}}'),
  json('constructor', '{"constructor":{"prototype":{"admin":true}}}'),
  json('a field twice', '{"nope":1,"nope":2}'),
  json('a field twice, spelled in two ways', '{"nope":1,"n\\u006fpe":2}'),
  json('NUL in a name', '{"a\\u0000":1}'),
  json('NUL in a text', '{"nope":"\\u0000"}'),
  json('half a surrogate pair', '{"nope":"\\udead"}'),
  json('a raw control character', '{"nope":"\u0001"}'),
  json('a number beyond all numbers', '{"nope":1e400}'),
  json('65 levels', `{"nope":${nested(64)}}`),
  json('a hundred thousand levels', nested(100_000)),
  json('brackets that never close', '['.repeat(200_000)),
  json('twenty thousand fields', `{${Array.from({ length: 20_000 }, (_, n) => `"f${n}":0`).join()}}`),
  json('a hundred thousand colons', `{"${'x'.repeat(100_000)}"${':'.repeat(100_000)}`),
  typed('text/plain'),
  typed('application/x-www-form-urlencoded'),
  typed('multipart/form-data; boundary=x'),
  typed('application/xml'),
  typed('application/json; charset=utf-16'),
  typed('application/jsonp'),
  { name: 'no content type', body: '{}', statuses: [415] },
  sent('a compressed body', 415, ['Content-Encoding: gzip'], gzipSync('{}')),
  sent('an encoding that nobody knows', 415, ['Content-Encoding: rot13'], '{}'),
  sent('a body of a gigabyte, announced', 413, ['Content-Length: 1000000000']),
  sent('a length that is no number', 400, ['Content-Length: 0x10']),
  sent('a negative length', 400, ['Content-Length: -1']),
  sent('a length and chunks', 400, ['Content-Length: 5', CHUNKED], '0\r\n\r\n'),
  sent('a chunk whose size is no number', 400, [CHUNKED], 'zz\r\n{}\r\n0\r\n\r\n'),
  sent('a chunk of negative size', 400, [CHUNKED], '-2\r\n{}\r\n0\r\n\r\n'),
  sent('extensions of a chunk without end', 413, [CHUNKED], `2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`),
  sent('another transfer encoding', 400, ['Transfer-Encoding: gzip, chunked'], '2\r\n{}\r\n0\r\n\r\n'),
];
