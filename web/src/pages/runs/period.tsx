import { place, setQuery } from '../../state/route.ts';
import { MY_ZONE, timeText } from '../../state/zone.ts';

/** A period that a link to this page has named; a click widens the filter to any time. */
export function Period() {
  const { query } = place.value;
  const from = query.get('from');
  const to = query.get('to');
  if (from === null && to === null) return null;
  return (
    <button
      type="button"
      class="label"
      title="Remove the period from the filter"
      onClick={() => {
        setQuery({ from: null, to: null });
      }}
    >
      {from !== null && `from ${written(from)} `}
      {to !== null && `to ${written(to)} `}✕
    </button>
  );
}

function written(at: string): string {
  return Number.isNaN(Date.parse(at)) ? at : timeText(at, MY_ZONE);
}
