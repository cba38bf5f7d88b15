import type { WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { useNow } from '../../parts/now.ts';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { Time, durationText } from '../../parts/time.tsx';
import { type Step, stepsOf } from './steps.ts';

const HEIGHT = 34;
/** Between two bars, as a part of all. */
const GAP = 0.002;
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
  let reached = 0;
  return (
    <svg class="band" role="img" aria-label={`${steps.length} steps; the table below lists them`}>
      {steps.map((step, index) => {
        const left = reached;
        reached += (weights[index] ?? 0) / all;
        return <Bar key={index} step={step} left={left} width={reached - left} />;
      })}
    </svg>
  );
}

/** Parts of the whole, so that the words in it keep their shape whatever the width of the window is. */
function Bar({ step, left, width }: { step: Step; left: number; width: number }) {
  const { kind, tone, text, label, from, to } = step;
  const height = kind === 'wait' ? 6 : kind === 'work' ? HEIGHT - 16 : HEIGHT - 4;
  return (
    <svg x={percent(left)} width={percent(width - Math.min(GAP, width / 5))} height={HEIGHT}>
      <title>{`${text}, ${durationText(to - from)}`}</title>
      <rect class={tone} width="100%" y={(HEIGHT - height) / 2} height={height} />
      {label !== null && (
        <text x={5} y={HEIGHT / 2}>
          {label}
        </text>
      )}
    </svg>
  );
}

function percent(part: number): string {
  return `${(part * 100).toFixed(3)}%`;
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
