import { get } from '../../api/http.ts';
import type { Stats } from '../../api/generated/types.gen.ts';
import { Loaded } from '../../parts/states.tsx';
import { usePoll } from '../../state/poll.ts';

export function Overview() {
  const stats = usePoll('stats', (signal) =>
    get<Stats>('/stats', { from: new Date(Date.now() - 3_600_000).toISOString() }, signal),
  );
  return (
    <div class="stack">
      <h1>Overview</h1>
      <Loaded from={stats}>{({ totalRuns }) => <p>{totalRuns} runs in the last hour</p>}</Loaded>
    </div>
  );
}
