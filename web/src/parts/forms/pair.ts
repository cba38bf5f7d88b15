import { escaped } from '../differences/difference.ts';

export type Pair = readonly [name: string, value: string];

/** Those of which something is typed. */
export function typedPairs(pairs: readonly Pair[]): Pair[] {
  return pairs.filter(([name, value]) => name + value !== '');
}

/** An object has each name once, so the daemon cannot say it. */
export function twice(pairs: readonly Pair[], path: string): { path: string; message: string }[] {
  const names = pairs.map(([name]) => name).filter((name) => name !== '');
  const again = names.filter((name, index) => names.indexOf(name) !== index);
  return again.map((name) => ({ path, message: `${name} is there twice` }));
}

/** Secret values by name, and apart from them those that stand in files. */
export interface SecretDraft {
  values: readonly Pair[];
  /** With names of files in the places of values. */
  files: readonly Pair[];
}

export const NO_SECRETS: SecretDraft = { values: [], files: [] };

export function secretDraftOf(values: Record<string, string | { file: string }>): SecretDraft {
  const all = Object.entries(values);
  return {
    values: all.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : [])),
    files: all.flatMap(([name, value]) => (typeof value === 'string' ? [] : [[name, value.file] as const])),
  };
}

/** As they are sent. */
export function secretsOf({ values, files }: SecretDraft): Record<string, string | { file: string }> {
  const named = typedPairs(files).map(([name, file]) => [name, { file }] as const);
  return Object.fromEntries<string | { file: string }>([...typedPairs(values), ...named]);
}

/** Whether it is about the value of one of these names. */
export function isOfPairs(fault: { path: string }, path: string, pairs: readonly Pair[]): boolean {
  return pairs.some(([name]) => `${fault.path}/`.startsWith(`${path}/${escaped(name)}/`));
}
