import type { WholeRun } from '../../../../client/src/generated/types.gen.ts';
import { useNow } from '../../parts/now.ts';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { Time, durationText } from '../../parts/time.tsx';
import { type Step, stepsOf } from './steps.ts';

const WIDTH = 1000;
const HEIGHT = 34;
const MAX_DRAWN = 120;

/** What happened to the run, drawn and listed. */
export function Timeline({ run, zone }: { run: WholeRun; zone: string | null }) {
  const now = useNow();
  const steps = stepsOf(run, now);
  if (steps.length === 0)
    return (
      <section class="card">
        <h2>What happened</h2>
        <p class="quiet">Nothing was sent. {reasonText(run)}</p>
      </section>
    );
  return (
    <section class="card">
      <h2>What happened</h2>
      <Band steps={steps.slice(-MAX_DRAWN)} />
      <p class="quiet band-note">Longer parts took longer, but they are not to scale.</p>
      <Table
        label="What happened, step by step"
        columns={columnsIn(zone)}
        rows={steps}
        keyOf={({ kind, from, text }) => `${kind} ${from} ${text}`}
      />
    </section>
  );
}

function reasonText({ status, reason }: WholeRun): string {
  return reason === null ? `The run is ${status}.` : `The run is ${status}: ${reason}.`;
}

/** An attempt may take a millisecond and the wait after it a week: the logarithm of both is in sight. */
function weightOf({ from, to }: Step): number {
  return 1 + Math.log10(1 + Math.max(0, to - from));
}

function Band({ steps }: { steps: readonly Step[] }) {
  const weights = steps.map(weightOf);
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  let x = 0;
  return (
    <svg
      class="band"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${steps.length} steps; the table below lists them`}
    >
      {steps.map((step, index) => {
        const width = (WIDTH * (weights[index] ?? 0)) / all;
        const left = x;
        x += width;
        const isWait = step.kind === 'wait';
        return (
          <rect
            key={index}
            class={step.tone}
            x={left}
            width={Math.max(1, width - 2)}
            y={isWait ? HEIGHT / 2 - 3 : step.kind === 'work' ? 8 : 2}
            height={isWait ? 6 : step.kind === 'work' ? HEIGHT - 16 : HEIGHT - 4}
          >
            <title>{`${step.text}, ${durationText(step.to - step.from)}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

function columnsIn(zone: string | null): readonly Column<Step>[] {
  return [
    { head: 'From', cell: ({ from }) => <Time at={new Date(from).toISOString()} zone={zone} /> },
    { head: 'Took', kind: 'number', cell: ({ from, to }) => durationText(to - from) },
    {
      head: 'What',
      kind: 'grow',
      cell: ({ text, tone, detail }) => (
        <>
          <span class={tone}>{text}</span>
          {detail !== null && <div class="quiet user">{detail}</div>}
        </>
      ),
    },
    {
      head: 'Instance',
      kind: 'minor',
      cell: ({ attempt }) => (attempt ? <span class="mono quiet">{attempt.instanceId}</span> : null),
    },
  ];
}
