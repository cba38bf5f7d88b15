import type { ComponentType } from 'preact';

/** What a page is given: what stands in the places of the `:names` of its path. */
export interface PageProps {
  params: Record<string, string>;
}

export type ShownPage = ComponentType<PageProps>;
