import { useState } from 'preact/hooks';
import { href, place } from '../../state/route.ts';
import { readStored, writeStored } from '../../state/stored.ts';

interface Saved {
  name: string;
  query: string;
}

/** Filters to come back to, kept in this browser. */
export function SavedFilters({ name }: { name: string }) {
  const [saved, setSaved] = useState(() => readSaved(name));
  const keep = (changed: Saved[]): void => {
    setSaved(changed);
    writeStored(`filters.${name}`, JSON.stringify(changed));
  };
  const query = new URLSearchParams(place.value.query);
  query.delete('cursor');
  const text = query.toString();
  const current = saved.find((one) => one.query === text);
  return (
    <span class="saved">
      {saved.map((one) => (
        <a
          key={one.name}
          class="label user"
          aria-current={one === current}
          href={`${href(place.value.path)}?${one.query}`}
        >
          {one.name}
        </a>
      ))}
      {current ? (
        <button
          type="button"
          class="plain"
          onClick={() => {
            keep(saved.filter((one) => one !== current));
          }}
        >
          Forget this filter
        </button>
      ) : (
        text !== '' && (
          <SaveFilter onSave={(as) => keep([...saved.filter((one) => one.name !== as), { name: as, query: text }])} />
        )
      )}
    </span>
  );
}

function SaveFilter({ onSave }: { onSave: (name: string) => void }) {
  const [typed, setTyped] = useState<string | null>(null);
  if (typed === null)
    return (
      <button
        type="button"
        class="plain"
        onClick={() => {
          setTyped('');
        }}
      >
        Save this filter
      </button>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (typed.trim() !== '') onSave(typed.trim());
        setTyped(null);
      }}
    >
      <input
        type="text"
        aria-label="Name of this filter"
        placeholder="Name of this filter"
        maxLength={40}
        autofocus
        value={typed}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value);
        }}
      />
    </form>
  );
}

function readSaved(name: string): Saved[] {
  try {
    return JSON.parse(readStored(`filters.${name}`) ?? '[]') as Saved[];
  } catch {
    return [];
  }
}
