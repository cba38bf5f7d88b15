import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Migration {
  /** The name of its file. */
  name: string;
  /** Of its text; firelock_migrations has those that were applied. */
  hash: string;
  statements: string[];
  /** Its statements run one by one, each outside of a transaction, and may be repeated. */
  isOutside: boolean;
}

/** The first line of a file whose statements run outside of a transaction. */
export const OUTSIDE = '-- outside of a transaction';
const BREAKPOINT = '--> statement-breakpoint';

/** All of a folder that drizzle-kit writes, in the order of its journal. */
export function readMigrations(folder: string): Migration[] {
  const journal = JSON.parse(readFileSync(join(folder, 'meta', '_journal.json'), 'utf8')) as {
    entries: { tag: string }[];
  };
  return journal.entries.map(({ tag }) => {
    const text = readFileSync(join(folder, `${tag}.sql`), 'utf8');
    return {
      name: tag,
      hash: createHash('sha256').update(text).digest('hex'),
      statements: text.split(BREAKPOINT).map(withoutComments).filter(isStatement),
      isOutside: text.startsWith(`${OUTSIDE}\n`),
    };
  });
}

/** Whole lines before the statement, so that a report begins with what it does. */
function withoutComments(statement: string): string {
  return statement.trim().replace(/^(--.*\n\s*)+/, '');
}

function isStatement(text: string): boolean {
  return text !== '' && !/^--.*$/.test(text);
}
