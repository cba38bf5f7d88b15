import type { Run } from '../../../clients/typescript/src/generated/types.gen.ts';
import { Time } from './time.tsx';
import { underWaySince } from './under-way.ts';

const TONES: Record<string, string> = {
  succeeded: 'good',
  active: 'good',
  ok: 'good',
  alive: 'good',
  dead: 'doubt',
  left: 'calm',
  running: 'busy',
  pending: 'busy',
  waiting: 'calm',
  failed: 'bad',
  error: 'bad',
  unknown: 'doubt',
  abandoned: 'bad',
  late: 'doubt',
  unstarted: 'doubt',
  slow: 'doubt',
  tooFast: 'doubt',
  result: 'doubt',
  missed: 'doubt',
  paused: 'doubt',
  skipped: 'calm',
  cancelled: 'calm',
  ended: 'calm',
};

/** A status, as the API calls it. Its word says it, and its colour only helps. */
export function Badge({ status, title }: { status: string; title?: string | undefined }) {
  return (
    <span class={`badge ${toneOf(status)}`} title={title}>
      {status}
    </span>
  );
}

interface RunBadgeProps {
  run: Pick<Run, 'status' | 'claimedAt' | 'observed' | 'trigger'>;
  /** Of its schedule. */
  zone?: string | null | undefined;
  shown?: string | undefined;
  title?: string | undefined;
  /** Its schedule expects no fires, so none is extra. */
  isBeat?: boolean;
}

/** The status of a run; of one in flight since when, and of one that was not sent so much, which its status does not say. */
export function RunBadge({ run, zone, shown, title, isBeat = false }: RunBadgeProps) {
  const since = underWaySince(run);
  return (
    <>
      <Badge status={run.status} title={title} />
      {run.observed && (
        <span class="quiet" title="Nothing was sent: another scheduler runs the job">
          {' '}
          observed{run.trigger === 'reported' && !isBeat && ', extra'}
        </span>
      )}
      {since !== null && (
        <span class="quiet">
          {' '}
          under way since <Time at={since} zone={zone} shown={shown} />
        </span>
      )}
    </>
  );
}

/** `good`, `bad`, `busy`, `doubt` or `calm`: classes that have a colour. */
export function toneOf(status: string): string {
  return TONES[status] ?? 'calm';
}
