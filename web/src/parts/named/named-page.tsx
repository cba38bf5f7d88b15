import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { get } from '../../api/http.ts';
import { usePoll } from '../../state/poll.ts';
import { place } from '../../state/route.ts';
import { may } from '../../state/session.ts';
import { FilterBar, TextFilter } from '../lists/filter-bar.tsx';
import { Pager } from '../lists/pager.tsx';
import { type Column, Table } from '../lists/table.tsx';
import { Empty, Loaded } from '../states.tsx';
import { Time } from '../time.tsx';
import type { Existing } from './define-dialog.tsx';

export interface FormProps<Thing> {
  /** Null: a new one. */
  existing: Thing | null;
  onDone: () => void;
  onClose: () => void;
}

interface Props<Thing> {
  /** `limit`. */
  noun: string;
  /** What one is, for those who have none. */
  about: string;
  /** Between its id and what may be done with it. */
  columns: readonly Column<Thing>[];
  /** Below its id. */
  note?: (thing: Thing) => ComponentChildren;
  /** What may be done with it besides editing. */
  actions?: (thing: Thing) => ComponentChildren;
  Form: (props: FormProps<Thing>) => ComponentChildren;
}

interface Answer<Thing> {
  items: readonly Thing[];
  nextCursor: string | null;
}

/** The things of a kind, to read and find, and for administrators to make and edit. */
export function NamedPage<Thing extends Existing>({ noun, about, Form, ...shown }: Props<Thing>) {
  const [edited, setEdited] = useState<Thing | 'new' | null>(null);
  const { query } = place.value;
  const asked = { q: query.get('q'), cursor: query.get('cursor') };
  const many = `${noun}s`;
  const title = capitalised(many);
  const list = usePoll(`${many} ${JSON.stringify(asked)}`, (signal) => get<Answer<Thing>>(`/${many}`, asked, signal), {
    keep: true,
  });
  return (
    <>
      <div class="bar">
        <h1>{title}</h1>
        {may('admin') && (
          <button type="button" onClick={() => setEdited('new')}>
            New {noun}…
          </button>
        )}
      </div>
      <FilterBar name={many}>
        <TextFilter name="q" label="Id or description" />
      </FilterBar>
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Empty title={asked.q === null ? `There are no ${many}` : `No ${noun} matches this filter`}>
              <p class="quiet">{about}</p>
            </Empty>
          ) : (
            <>
              <Table
                label={title}
                columns={columnsOf({ noun, ...shown }, setEdited)}
                rows={items}
                keyOf={({ id }) => id}
              />
              <Pager nextCursor={nextCursor} first="First page" />
            </>
          )
        }
      </Loaded>
      {edited !== null && (
        <Form existing={edited === 'new' ? null : edited} onDone={list.refresh} onClose={() => setEdited(null)} />
      )}
    </>
  );
}

function columnsOf<Thing extends Existing>(
  { noun, columns, note, actions }: Pick<Props<Thing>, 'noun' | 'columns' | 'note' | 'actions'>,
  onEdit: (thing: Thing) => void,
): readonly Column<Thing>[] {
  const name: Column<Thing> = {
    head: capitalised(noun),
    kind: 'grow',
    cell: (thing) => (
      <>
        <span class="user">{thing.id}</span>
        {note?.(thing)}
        {thing.description !== null && <div class="user quiet clip">{thing.description}</div>}
      </>
    ),
  };
  const edit: Column<Thing> = {
    head: <span class="unseen">Actions</span>,
    cell: (thing) => (
      <div class="bar">
        {actions?.(thing)}
        <button type="button" aria-label={`Edit ${thing.id}`} onClick={() => onEdit(thing)}>
          Edit…
        </button>
      </div>
    ),
  };
  return [name, ...columns, ...(may('admin') ? [edit] : [])];
}

/** Which version it is, and since when. */
export const VERSION: readonly Column<Existing & { updatedAt: string }>[] = [
  { head: 'Version', kind: 'number', cell: ({ version }) => version },
  { head: 'Changed', kind: 'minor', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
];

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
