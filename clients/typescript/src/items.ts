import type { CallOptions } from './operation.ts';

interface Page {
  items: readonly unknown[];
  nextCursor: string | null;
}

type List = (input: never, options?: CallOptions) => Promise<Page>;
type InputOf<L extends List> = NonNullable<Parameters<L>[0]>;
type ItemOf<L extends List> = Awaited<ReturnType<L>>['items'][number];

/** All items of a list, page after page: `for await (const run of eachItem(firelock.listRuns, { status: 'failed' }))`. */
export async function* eachItem<L extends List>(
  list: L,
  input: InputOf<L>,
  options?: CallOptions,
): AsyncGenerator<ItemOf<L>, void, undefined> {
  let page = await list(input, options);
  yield* page.items as ItemOf<L>[];
  while (page.nextCursor !== null) {
    page = await list({ ...(input as object), cursor: page.nextCursor } as never, options);
    yield* page.items as ItemOf<L>[];
  }
}
