import { usageError } from '../exit-codes.ts';

export interface DemoOptions {
  seconds: number;
  schedules: number;
  killEvery: number;
}

/** What each option may be. */
export const DEMO_OPTIONS = {
  seconds: { flag: '--seconds', standard: 90, least: 10, most: 3600 },
  schedules: { flag: '--schedules', standard: 300, least: 10, most: 2000 },
  killEvery: { flag: '--kill-every', standard: 8, least: 3, most: 600 },
} as const;

/** The options as numbers. @throws CliError that names every fault */
export function readDemoOptions(given: Partial<Record<keyof DemoOptions, string>>): DemoOptions {
  const faults: string[] = [];
  const read = (name: keyof DemoOptions): number => {
    const { flag, standard, least, most } = DEMO_OPTIONS[name];
    const text = given[name] ?? String(standard);
    const value = /^\d{1,6}$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most))
      faults.push(`${flag} is ${text}; expected: a whole number from ${least} to ${most}`);
    return value;
  };
  const options = { seconds: read('seconds'), schedules: read('schedules'), killEvery: read('killEvery') };
  if (options.killEvery >= options.seconds) {
    faults.push(`--kill-every ${options.killEvery} kills no instance within --seconds ${options.seconds}`);
  }
  if (faults.length > 0) throw usageError(faults.join('\nfirelock: '));
  return options;
}
