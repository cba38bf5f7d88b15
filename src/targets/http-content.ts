import { createGunzip, constants } from 'node:zlib';
import { type AnswerHeaders, firstValue } from './http-answer.ts';

/** The body of an answer as UTF-8 without a byte order mark. */
export interface Content {
  body: Buffer;
  /** False: its bytes are not what its headers say, so that nobody can tell what it says. */
  isDecoded: boolean;
}

/**
 * What an answer says, whatever its server did to the bytes: packs them though nobody asked for that, writes them in a
 * charset of its own (RFC 9110, 8.3.2), or puts a byte order mark before them. At most `limit` bytes are unpacked.
 */
export function contentOf(headers: AnswerHeaders, bytes: Buffer, limit: number): Content | Promise<Content> {
  const coding = firstValue(headers['content-encoding'])?.trim().toLowerCase() ?? '';
  if (coding === '' || coding === 'identity') return inUtf8(headers, bytes, bytes.length >= limit);
  if (bytes.length === 0) return { body: bytes, isDecoded: true };
  if (!GZIP.has(coding)) return { body: bytes, isDecoded: false };
  return unpacked(bytes, limit).then(
    (plain) => inUtf8(headers, plain, plain.length >= limit),
    () => ({ body: bytes, isDecoded: false }),
  );
}

/** At most `limit` bytes of them. */
export function joined(chunks: readonly Buffer[], limit: number): Buffer {
  const read = chunks.length > 1 ? Buffer.concat(chunks) : (chunks[0] ?? NO_BYTES);
  return read.length > limit ? read.subarray(0, limit) : read;
}

const NO_BYTES = Buffer.alloc(0);

const GZIP: ReadonlySet<string> = new Set(['gzip', 'x-gzip']);

/** In a thread of libuv's, and no further than is read: 64 KiB can hold 64 MiB. The bytes may end anywhere. */
async function unpacked(bytes: Buffer, limit: number): Promise<Buffer> {
  const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  gunzip.end(bytes);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of gunzip) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size >= limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit);
}

function inUtf8(headers: AnswerHeaders, bytes: Buffer, isCut: boolean): Content {
  const charset = bytes.length === 0 ? null : (markedCharset(bytes) ?? namedCharset(headers));
  if (charset === null) return { body: bytes, isDecoded: true };
  try {
    const decoder = new TextDecoder(charset, { fatal: true });
    // What was cut may end within a character.
    return { body: Buffer.from(decoder.decode(bytes, { stream: isCut })), isDecoded: true };
  } catch {
    return { body: bytes, isDecoded: false };
  }
}

/** By its byte order mark, which `TextDecoder` takes away. */
function markedCharset(bytes: Buffer): string | null {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  return bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : null;
}

/** Null: it is UTF-8, as that of an answer that says nothing. */
function namedCharset(headers: AnswerHeaders): string | null {
  const type = firstValue(headers['content-type']);
  if (type === undefined || !/charset/i.test(type)) return null;
  const charset = /;\s*charset\s*=\s*"?([^\s";,]+)/i.exec(type)?.[1]?.toLowerCase() ?? 'utf-8';
  return charset === 'utf-8' || charset === 'utf8' ? null : charset;
}
