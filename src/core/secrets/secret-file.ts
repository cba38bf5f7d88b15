import { CannotOpen, type KeyRing, type SealedText, type SecretText } from './key-ring.ts';
import { type SealedPlace, openAt } from './sealed-values.ts';

/** A file of FIRELOCK_SECRETS_DIR, whose content is a secret value. */
export interface SecretFile {
  file: string;
  /** Proves that a holder of the key chose this file for this place; null: no key was configured. */
  seal: SealedText | null;
}

/** A secret value as it is stored. */
export type Credential = SecretText | SecretFile;

export function isSecretFile(value: unknown): value is SecretFile {
  return typeof value === 'object' && value !== null && 'file' in value;
}

/** Of a file the name is encrypted, beside itself: the result proves who chose it. */
export function replaceFile(
  { file, seal }: SecretFile,
  place: SealedPlace,
  replace: (value: SecretText, place: SealedPlace) => SecretText,
): SecretFile {
  const name = replace(seal ?? file, { ...place, mayStayPlain: true });
  return { file, seal: typeof name === 'object' ? name : null };
}

/** @throws CannotOpen unless a holder of the key chose this file for this place */
export function checkChosen(ring: KeyRing, { file, seal }: SecretFile, place: SealedPlace, root = ''): void {
  const named = `${root}/${place.steps.join('/')} names the file ${JSON.stringify(file)}`;
  if (seal === null && ring.sealsWith !== null)
    throw new CannotOpen(
      `${named} without a proof that a holder of the key chose it: name another file, and then this one again`,
    );
  if (seal !== null && openAt(ring, seal, place, root) !== file)
    throw new CannotOpen(`${named}, which is not the one that was chosen: it was changed in the database`);
}

/** Answers the content of a file of FIRELOCK_SECRETS_DIR, and throws if there is none. */
export type ReadFile = (name: string) => string;

/** Line breaks at its end do not count. `faultOf`: why it cannot be the value. @throws CannotOpen */
export function valueOfFile(
  { file }: SecretFile,
  at: string,
  { readFile, faultOf }: { readFile: ReadFile; faultOf: (text: string) => string | null },
): string {
  const refused = (why: string) =>
    new CannotOpen(`${at} cannot be taken from the file ${JSON.stringify(file)}: ${why}`);
  let text: string;
  try {
    text = readFile(file).replace(/[\r\n]+$/, '');
  } catch (error) {
    throw refused(error instanceof Error ? error.message : String(error));
  }
  const fault = faultOf(text);
  if (fault !== null) throw refused(`it ${fault}`);
  return text;
}
