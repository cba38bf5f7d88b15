import { readFileSync, accessSync, constants, statSync } from 'node:fs';
import { type ApiToken, parseTokenLines, splitTokenFile, splitTokenList } from '../core/access/token.ts';
import type { ParameterFault } from './database-parameters.ts';
import type { tlsFiles } from './database-url.ts';

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
  const { tokens, faults } = parseTokenLines([...listed, ...splitTokenFile(filed, 'FIRELOCK_API_TOKENS_FILE')]);
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

/** The files are read for each connection, so that they can be replaced; the start only reports missing files. */
export function unreadable(files: ReturnType<typeof tlsFiles>): ParameterFault[] {
  return files.flatMap(({ parameter, file }) => {
    try {
      accessSync(file, constants.R_OK);
      return [];
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
      return [{ parameter, message: `names ${file}, which cannot be read (${code})` }];
    }
  });
}

export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
