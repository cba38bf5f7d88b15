import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Makes a copy of `drizzle/` that of a later version, which has one migration more. */
export function addMigration(folder: string, name: string, ...lines: string[]): void {
  const file = join(folder, 'meta', '_journal.json');
  const journal = JSON.parse(readFileSync(file, 'utf8')) as { entries: { tag: string }[] };
  journal.entries.push({ tag: name });
  writeFileSync(file, JSON.stringify(journal));
  writeFileSync(join(folder, `${name}.sql`), lines.join('\n'));
}
