import { useState } from 'preact/hooks';
import { call, get } from '../../api/http.ts';
import type {
  MintPingKeyResponse,
  ObservedComparison,
  Schedule,
} from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Copy } from '../../parts/copy.tsx';
import { Figures } from '../../parts/figures.tsx';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { Loaded, Refusal } from '../../parts/states.tsx';
import { Time, durationText } from '../../parts/time.tsx';
import { useAct } from '../../state/act.ts';
import { BASE_PATH } from '../../state/base.ts';
import { usePoll } from '../../state/poll.ts';
import { may } from '../../state/session.ts';
import { callPath } from '../../state/schedule-paths.ts';

const EVERY_MS = 30_000;

interface Props {
  schedule: Schedule;
  /** Null: for ever. */
  until: string | null;
  onDone: () => void;
}

/** Of a schedule whose job runs elsewhere: what it reported, beside what was expected, and where it reports. */
export function Observed({ schedule, until, onDone }: Props) {
  const { id, timezone } = schedule;
  const compared = usePoll(
    `observed ${id}`,
    (signal) => get<ObservedComparison>(callPath(id, '/observed'), {}, signal),
    { everyMs: EVERY_MS },
  );
  return (
    <section class="card" aria-labelledby="observed">
      <h2 id="observed">Observed</h2>
      <div class="stack">
        <p>
          {until === null ? (
            'Another scheduler runs this job: its runs are recorded here, and nothing is sent.'
          ) : (
            <>
              Observed until <Time at={until} zone={timezone} relative />, then sent: until then another scheduler runs
              this job, and nothing is sent.
            </>
          )}
        </p>
        <Loaded from={compared}>{(data) => <Comparison compared={data} />}</Loaded>
        <Address schedule={schedule} onDone={onDone} />
      </div>
    </section>
  );
}

function Comparison({ compared }: { compared: ObservedComparison }) {
  const { expected, reported, missed, extra, failed, lateness } = compared;
  return (
    <Figures
      figures={[
        ['expected, last 30 days', expected ?? '–'],
        ['reported', reported],
        ['missed', missed],
        ['extra', extra],
        ['failed', failed],
        ['late by, median', durationText(lateness.p50Ms)],
        ['late by, p95', durationText(lateness.p95Ms)],
        ['late by, at most', durationText(lateness.maxMs)],
      ]}
    />
  );
}

/** Where its job reports: whoever knows it may. */
function Address({ schedule: { id, pingKey }, onDone }: Omit<Props, 'until'>) {
  const [isAsking, setIsAsking] = useState(false);
  if (!may('operator')) return <p class="quiet">Where its job reports is shown to operators and admins.</p>;
  const url = `${location.origin}${BASE_PATH}/ping/${pingKey ?? ''}`;
  return (
    <div>
      {pingKey === null ? (
        <p class="warning">No key of this instance decrypts where its job reports. The job can report still.</p>
      ) : (
        <p>
          Its job reports to <code>{url}</code>, or below it: <code>/start</code>, <code>/fail</code>, <code>/log</code>
          , or its exit code.
        </p>
      )}
      <div class="actions">
        {pingKey !== null && <Copy text={() => url}>Copy the address</Copy>}
        <button type="button" onClick={() => setIsAsking(true)}>
          New address…
        </button>
      </div>
      {isAsking && <NewAddress id={id} onDone={onDone} onClose={() => setIsAsking(false)} />}
    </div>
  );
}

function NewAddress({ id, onDone, onClose }: { id: string; onDone: () => void; onClose: () => void }) {
  const { act, isBusy, refusal } = useAct({ quietly: true });
  const replace = async (): Promise<void> => {
    const isDone = await act(async () => {
      await call<MintPingKeyResponse>('POST', callPath(id, '/ping-key'));
      return 'Its job has to report to the new address now.';
    });
    if (!isDone) return;
    onDone();
    onClose();
  };
  return (
    <Dialog title="Another address for reports" onClose={onClose}>
      <p class="field">The old one is unknown at once: what the job reports there is lost.</p>
      {refusal !== null && <Refusal text={refusal} />}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="main" disabled={isBusy} onClick={() => void replace()}>
          Replace it
        </button>
      </div>
    </Dialog>
  );
}
