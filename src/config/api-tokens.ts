import { readFileSync } from 'node:fs';
import { type ApiToken, parseTokenLines, splitTokenFile, splitTokenList } from '../core/access/token.ts';

/** Where the lines of tokens are: in a variable, in a file, or in both. */
export interface TokenSources {
  list: string | undefined;
  file: string | undefined;
}

/** All tokens, or every fault. Also called while the daemon runs, to read the file again. */
export function readApiTokens({ list, file }: TokenSources): { tokens: ApiToken[] } | { faults: string[] } {
  if (list === undefined && file === undefined) return { tokens: [] };
  const listed = list === undefined ? [] : splitTokenList(list, 'FIRELOCK_API_TOKENS');
  const filed = file === undefined ? '' : contentOf(file);
  if (filed === null) return { faults: [`FIRELOCK_API_TOKENS_FILE: the file ${file} cannot be read`] };
  const { tokens, faults } = parseTokenLines([
    ...listed,
    ...splitTokenFile(filed, 'FIRELOCK_API_TOKENS_FILE'),
  ]);
  if (tokens.length + faults.length === 0) {
    // Without any token, the API could not be called; more likely the file is only half written.
    const set = SOURCES.filter((_name, index) => [list, file][index] !== undefined);
    faults.push(`${set.join(' and ')}: no token there; unset it to answer without tokens`);
  }
  return faults.length > 0 ? { faults } : { tokens };
}

const SOURCES = ['FIRELOCK_API_TOKENS', 'FIRELOCK_API_TOKENS_FILE'];

function contentOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
