import { findProgram, isExecutable } from './programs-here.ts';

/** The program of a Chromium; null: none is installed. */
export function browserHere(): string | null {
  const named = process.env['FIRELOCK_TEST_BROWSER'];
  const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
  return named !== undefined && isExecutable(named) ? named : (names.map(findProgram).find(Boolean) ?? null);
}
