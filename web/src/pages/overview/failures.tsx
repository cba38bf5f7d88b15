import { get } from '../../api/http.ts';
import type { ListRunsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { usePoll } from '../../state/poll.ts';
import { href } from '../../state/route.ts';
import { RunTable } from '../runs/run-table.tsx';

const STATUS = 'failed,unknown,abandoned';
const DAY_MS = 86_400_000;

/** The last runs that did not succeed, of the last day. */
export function Failures() {
  const { data } = usePoll('failures', (signal) => {
    const from = new Date(Date.now() - DAY_MS).toISOString();
    return get<ListRunsResponse>('/runs', { status: STATUS, from, limit: 5 }, signal);
  });
  if (!data || data.items.length === 0) return null;
  return (
    <section class="card">
      <h2>
        <a href={href('/runs', { status: STATUS, since: '24h' })}>Runs that did not succeed</a>
      </h2>
      <RunTable label="Runs that did not succeed" runs={data.items} />
    </section>
  );
}
