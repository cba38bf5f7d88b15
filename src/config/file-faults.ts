import { accessSync, constants, statSync } from 'node:fs';
import type { ParameterFault } from './database-parameters.ts';
import type { tlsFiles } from './database-url.ts';

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
