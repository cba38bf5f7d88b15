import { type Command, InvalidArgumentError } from 'commander';
import type { Cli } from '../cli.ts';
import type { View } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';
import type { Page } from './answers.ts';
import type { Query, Server } from './server-calls.ts';

/** The largest page that the API answers. */
const LARGEST_PAGE = 500;
const STANDARD_LIMIT = 50;

export interface ListOptions {
  limit?: number;
  all?: true;
  cursor?: string;
}

/** Options of every command that lists. */
export function listOptions(command: Command): Command {
  return command
    .option('--limit <n>', `how many at most (default: ${STANDARD_LIMIT})`, wholeNumber)
    .option('--all', 'all of them, page by page')
    .option('--cursor <cursor>', 'go on where a list ended: its nextCursor');
}

/** Reads as many items as wanted, in as many pages as needed, and answers them as one page, with what the last one says beside them. */
export async function readPages<Item, Answer extends Page<Item> = Page<Item>>(
  server: Server,
  path: string,
  query: Query,
  { limit = STANDARD_LIMIT, all, cursor }: ListOptions,
): Promise<Answer> {
  const items: Item[] = [];
  let next: string | null = cursor ?? null;
  for (;;) {
    const wanted = all ? LARGEST_PAGE : Math.min(LARGEST_PAGE, limit - items.length);
    const asked: Query = { ...query, limit: wanted, cursor: next ?? undefined };
    const page = (await server.call('GET', path, { query: asked })).body() as Answer;
    items.push(...page.items);
    next = page.nextCursor ?? null;
    if (next === null || (!all && items.length >= limit)) return { ...page, items, nextCursor: next };
  }
}

interface Listing {
  path: string;
  query?: Query;
  pages: ListOptions;
  /** Whether its columns show times. */
  hasTimes?: boolean;
}

export async function showList<Item>(
  cli: Cli,
  { path, query = {}, pages, hasTimes = true }: Listing,
  columnsOf: (view: View) => Column<Item>[],
): Promise<void> {
  const found = await readPages<Item>(cli.server(), path, query, pages);
  cli
    .output()
    .show(found, (view) => [
      ...view.table(columnsOf(view), found.items),
      ...(hasTimes ? [view.zoneNote] : []),
      ...moreNote(found),
    ]);
}

/** Printed under a list that has been cut off. */
export function moreNote({ nextCursor }: { nextCursor: string | null }): string[] {
  return nextCursor === null ? [] : ['there are more: use --limit N, or --all'];
}

/** Checks only what counting pages needs; the server says which numbers are valid. */
export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}
