import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/** The program of a Chromium; null: none is installed. */
export function browserHere(): string | null {
  const named = process.env['FIRELOCK_TEST_BROWSER'];
  const folders = (process.env['PATH'] ?? '').split(':').filter((folder) => folder !== '');
  const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
  const paths = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  return [...(named === undefined ? [] : [named]), ...paths].find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
