import { get } from '../../api/http.ts';
import type { ListRunsResponse, WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { RunBadge } from '../../parts/badge.tsx';
import { OriginLink, RunLink } from '../../parts/links.tsx';
import { usePoll } from '../../state/poll.ts';
import { type Neighbour, neighbour } from './neighbour.ts';

/** Each costs a question to the daemon. */
const SHOWN = 8;
const ASK_EVERY_MS = 10_000;
const ROW = 48;
const GAP = 44;

/** The runs that it waited for or came from, and those that wait for it or follow it; absent where there are none. */
export function Neighbours({ run }: { run: WholeRun }) {
  const before = [...new Set([...(run.parentRunId === null ? [] : [run.parentRunId]), ...run.dependsOn])];
  const after = [...run.dependents, ...useFollowers(run)];
  const asked = [before.slice(0, SHOWN), after.slice(0, SHOWN)] as const;
  const { data } = usePoll(
    JSON.stringify(asked),
    async (signal) => ({
      before: await Promise.all(asked[0].map((id) => neighbour(id, signal))),
      after: await Promise.all(asked[1].map((id) => neighbour(id, signal))),
    }),
    { everyMs: ASK_EVERY_MS },
  );
  if (before.length + after.length === 0) return null;
  const rows = Math.max(asked[0].length, asked[1].length, 1);
  return (
    <section class="card">
      <h2>Before and after</h2>
      <div class="graph">
        <Side label="Before it" ids={asked[0]} known={data?.before} more={before.length - SHOWN} />
        <Edges from={asked[0].length} to={1} rows={rows} />
        <ul aria-label="This run">
          <li class="node this">
            <strong>This run</strong> <RunBadge run={run} />
          </li>
        </ul>
        <Edges from={1} to={asked[1].length} rows={rows} />
        <Side label="After it" ids={asked[1]} known={data?.after} more={after.length - SHOWN} />
      </div>
    </section>
  );
}

/** Runs that schedules made of its end, the last one: their fire time is that moment. */
function useFollowers({ id, finishedAt }: WholeRun): string[] {
  const { data = [] } = usePoll(
    `followers ${id} ${finishedAt ?? ''}`,
    async (signal) => {
      if (finishedAt === null) return [];
      const to = new Date(Date.parse(finishedAt) + 1).toISOString();
      const query = { trigger: 'after', from: finishedAt, to, limit: 500 };
      const { items } = await get<ListRunsResponse>('/runs', query, signal);
      return items.filter(({ parentRunId }) => parentRunId === id).map((run) => run.id);
    },
    { everyMs: ASK_EVERY_MS },
  );
  return data;
}

interface SideProps {
  label: string;
  ids: readonly string[];
  known: readonly Neighbour[] | undefined;
  more: number;
}

function Side({ label, ids, known, more }: SideProps) {
  if (ids.length === 0) return null;
  return (
    <ul aria-label={label}>
      {ids.map((id, index) => {
        const run = known?.[index]?.run;
        return (
          <li key={id} class="node">
            <RunLink id={id} /> {run && <RunBadge run={run} />}
            {run === null && <span class="quiet">no longer kept</span>}
            <div class="quiet clip">{run && <OriginLink of={run} />}</div>
          </li>
        );
      })}
      {more > 0 && <li class="quiet">and {more} more</li>}
    </ul>
  );
}

/** Lines between two columns, whose nodes stand in the middle of all rows. */
function Edges({ from, to, rows }: { from: number; to: number; rows: number }) {
  const height = rows * ROW;
  const y = (index: number, count: number) => (height - count * ROW) / 2 + (index + 0.5) * ROW;
  const lines = [...Array(Math.max(from, to)).keys()].map((index) => [
    y(from === 1 ? 0 : index, from),
    y(to === 1 ? 0 : index, to),
  ]);
  if (from === 0 || to === 0) return null;
  return (
    <svg class="edges" width={GAP} height={height} viewBox={`0 0 ${GAP} ${height}`} aria-hidden="true">
      {lines.map(([a = 0, b = 0], index) => (
        <path key={index} d={`M0 ${a}C${GAP / 2} ${a} ${GAP / 2} ${b} ${GAP} ${b}`} />
      ))}
    </svg>
  );
}
