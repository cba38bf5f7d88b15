import { hash } from 'node:crypto';

/** A lane's name is part of index rows, and PostgreSQL takes none of more than a third of a page. */
const MAX_BYTES = 200;

/** A short lane as it is. A longer one becomes its beginning, for readers, and its hash, which keeps it apart from others. */
export function boundedLane(lane: string): string {
  if (Buffer.byteLength(lane) <= MAX_BYTES) return lane;
  const end = `#${hash('sha256', lane)}`;
  const { read } = new TextEncoder().encodeInto(lane, new Uint8Array(MAX_BYTES - end.length));
  return lane.slice(0, read) + end;
}
