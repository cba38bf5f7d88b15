/** A call (of a target, a lookup, a cancel), or a connection. */
export type HeaderPlace = 'call' | 'connection';

/** Why a user may not set this header there, or null. `value` may contain templates. */
export function headerFault(name: string, value: string, place: HeaderPlace = 'call'): string | null {
  if (!TOKEN.test(name)) return 'is not a header name';
  if (place === 'connection' && dashed(name) === 'content-type')
    return 'is a header that no connection sets: what is sent decides';
  if (isReservedHeader(name, place)) return 'is a header that users cannot set';
  if (name.toLowerCase() === 'host' && !isHost(value)) return 'is not a host, with a port or without one';
  if (!canBeSent(value)) return 'has a value with characters that no header can carry';
  if (value !== value.trim()) return 'has a value that begins or ends with white space';
  return null;
}

/** Whether a header can carry the value, templates filled in or not. */
export function canBeSent(value: string): boolean {
  return !UNSENDABLE.test(value);
}

/**
 * Headers that firelock sets itself, headers of the connection and the framing, and headers that name the caller to a
 * firelock behind a trusted proxy; also with `_` for `-`, since CGI and its successors (WSGI, PHP) make the same
 * variable of both. The body of a call says its type, not the connection.
 */
export function isReservedHeader(name: string, place: HeaderPlace = 'call'): boolean {
  if (SETTABLE[place].includes(name.toLowerCase())) return false;
  const lower = dashed(name);
  if (place === 'connection' && lower === 'content-type') return true;
  return RESERVED.has(lower) || RESERVED_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

/** Of the reserved ones, which a user may set all the same. */
const SETTABLE: Readonly<Record<HeaderPlace, readonly string[]>> = {
  call: ['user-agent'],
  connection: ['user-agent', 'host'],
};

function dashed(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

function isHost(value: string): boolean {
  return /^[^\s/?#@\\]+$/.test(value) && URL.canParse(`http://${value}`);
}

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Anything but tab, visible ASCII, space and the upper half of Latin-1. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/;

const RESERVED_PREFIXES = ['webhook-', 'ce-', 'proxy-', 'x-firelock-'];

const RESERVED = new Set([
  'idempotency-key',
  'traceparent',
  'user-agent',
  'host',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'expect',
  'http2-settings',
  'content-encoding',
  'content-range',
]);
