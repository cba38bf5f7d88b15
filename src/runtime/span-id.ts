import { randomBytes } from 'node:crypto';

const LENGTH = 16;
const AT_ONCE = 256;
const NONE = '0'.repeat(LENGTH);
let ids = '';
let used = 0;

/** The id of a span, as W3C Trace Context has it: 16 hex digits, random, and never all zeros. */
export function newSpanId(): string {
  if (used >= ids.length) {
    ids = randomBytes((AT_ONCE * LENGTH) / 2).toString('hex');
    used = 0;
  }
  const id = ids.slice(used, (used += LENGTH));
  return id === NONE ? newSpanId() : id;
}
