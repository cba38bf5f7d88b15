/** How much of an answer, or of a reported end, is kept: bytes of UTF-8. */
const KEPT_TEXT_BYTES = 4096;

/** The beginning as text that PostgreSQL can store, at most KEPT_TEXT_BYTES of UTF-8. */
export function keptText(bytes: Buffer): string {
  if (bytes.length === 0) return '';
  const text = storable(bytes.toString('utf8', 0, KEPT_TEXT_BYTES));
  if (bytes.length <= KEPT_TEXT_BYTES && text.length * 3 <= KEPT_TEXT_BYTES) return text;
  // The cut may have split a character, and each invalid byte has become three.
  const whole = bytes.length > KEPT_TEXT_BYTES ? withoutSplitEnd(bytes) : text;
  const { read } = new TextEncoder().encodeInto(whole, new Uint8Array(KEPT_TEXT_BYTES));
  return whole.slice(0, read);
}

/** Whether such a text may be a beginning only. */
export function mayBeCut(kept: string): boolean {
  return Buffer.byteLength(kept) > KEPT_TEXT_BYTES - MOST_BYTES_OF_CHARACTER;
}

const MOST_BYTES_OF_CHARACTER = 4;

/** PostgreSQL has no NUL in text; a cut may leave half of a surrogate pair. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

function withoutSplitEnd(bytes: Buffer): string {
  return storable(
    new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, KEPT_TEXT_BYTES), {
      stream: true,
    }),
  );
}
