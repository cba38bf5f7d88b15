import { writeFile } from 'node:fs/promises';

/** What is left running is ended on the way out. Answers how the program says how far it is. */
export function beginCommand(quiet = false): (line: string) => void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
  const began = performance.now();
  return (line) => {
    if (!quiet) console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(7)} s  ${line}`);
  };
}

export function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} must be a number, not ${text}`);
  return value;
}

/** One at random, unless it was given. */
export function seedOf(text: string | undefined): number {
  return text === undefined ? Math.floor(Math.random() * 2 ** 31) : numberOf('seed', text);
}

export async function writeReport(file: string | undefined, content: unknown): Promise<void> {
  if (file !== undefined) await writeFile(file, `${JSON.stringify(content, null, 2)}\n`);
}
