import { CliError, EXIT, usageError } from '../../exit-codes.ts';

/** The text of a file, without a mark at its beginning. @throws CliError that names the first line in another encoding */
export function decoded(bytes: Buffer, path: string, encoding = 'utf-8'): string {
  const text = decode(bytes, encoding);
  if (text !== null) return text;
  let line = 1;
  for (let from = 0; from < bytes.length; line += 1) {
    const end = bytes.indexOf(0x0a, from);
    const next = end < 0 ? bytes.length : end + 1;
    if (decode(bytes.subarray(from, next), encoding) === null) break;
    from = next;
  }
  throw new CliError(
    EXIT.failed,
    `${path}:${line}: not in ${encoding}: --encoding says in which it is, as latin1`,
  );
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
