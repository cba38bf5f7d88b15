import { CliError, EXIT, usageError } from '../../exit-codes.ts';

/** The text of a file, without a mark at its beginning. @throws CliError that names the first line in another encoding */
export function decoded(bytes: Buffer, path: string, encoding = 'utf-8'): string {
  const text = decode(bytes, encoding);
  if (text !== null) return text;
  let line = 0;
  for (const one of linesIn(bytes)) {
    line += 1;
    if (decode(one, encoding) === null) break;
  }
  throw new CliError(
    EXIT.failed,
    `${path}:${line}: not in ${encoding}: --encoding says in which it is, as latin1`,
  );
}

/** With their line breaks. */
export function* linesIn(bytes: Buffer): Generator<Buffer, void, void> {
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(0x0a, from);
    const next = end < 0 ? bytes.length : end + 1;
    yield bytes.subarray(from, next);
    from = next;
  }
}

function decode(bytes: Uint8Array, encoding: string): string | null {
  let decoder;
  try {
    decoder = new TextDecoder(encoding, { fatal: true });
  } catch {
    throw usageError(`--encoding ${encoding} is not known`);
  }
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}
