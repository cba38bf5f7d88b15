import { type Command, InvalidArgumentError } from 'commander';
import type { Page } from './answers.ts';
import type { Query, Server } from './server-calls.ts';

/** What the API answers at once, at most. */
const LARGEST_PAGE = 500;
const STANDARD_LIMIT = 50;

export interface ListOptions {
  limit?: number;
  all?: true;
  cursor?: string;
}

/** Of every command that lists. */
export function listOptions(command: Command): Command {
  return command
    .option('--limit <n>', `how many at most (default: ${STANDARD_LIMIT})`, wholeNumber)
    .option('--all', 'all of them, page by page')
    .option('--cursor <cursor>', 'go on where a list ended: its nextCursor');
}

/** As many as are asked for, in as many pages as it takes, as one page. */
export async function readPages<Item>(
  server: Server,
  path: string,
  query: Query,
  { limit = STANDARD_LIMIT, all, cursor }: ListOptions,
): Promise<Required<Page<Item>>> {
  const items: Item[] = [];
  let next: string | null = cursor ?? null;
  do {
    const wanted = all ? LARGEST_PAGE : Math.min(LARGEST_PAGE, limit - items.length);
    const asked: Query = { ...query, limit: wanted, cursor: next ?? undefined };
    const page = (await server.call('GET', path, { query: asked })).body() as Page<Item>;
    items.push(...page.items);
    next = page.nextCursor ?? null;
  } while (next !== null && (all || items.length < limit));
  return { items, nextCursor: next };
}

/** Printed under a list that has been cut off. */
export function moreNote({ nextCursor }: { nextCursor: string | null }): string[] {
  return nextCursor === null ? [] : ['there are more: --limit N, or --all'];
}

/** Only what counting pages needs; what a number may be is for the server to say. */
export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}
