import { useState } from 'preact/hooks';
import { call } from '../../api/http.ts';
import type { WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { Refusal } from '../../parts/states.tsx';
import { useAct } from '../../state/act.ts';
import { goTo, href } from '../../state/route.ts';
import { usePoll } from '../../state/poll.ts';
import { may } from '../../state/session.ts';
import { hasLostDependents } from './neighbour.ts';
import { callPath } from '../../state/schedule-paths.ts';

type Action = 'retry' | 'cancel' | 'fire';

interface Words {
  button: string;
  question: string;
  /** What will happen. */
  text: string;
}

const WORDS: Record<Action, Words> = {
  retry: {
    button: 'Retry',
    question: 'Retry this run?',
    text: 'It is sent again under its id, by the present version of its schedule or notifier.',
  },
  cancel: {
    button: 'Cancel',
    question: 'Cancel this run?',
    text: 'It ends as cancelled. What its target has begun goes on, unless the target can be told to cancel.',
  },
  fire: {
    button: 'Fire again',
    question: 'Fire again, with the same payload?',
    text: 'This makes a new run of the schedule, with an id of its own.',
  },
};

interface Props {
  run: WholeRun;
  /** Its schedule is there; it may have been deleted. */
  hasSchedule: boolean;
  onDone: () => void;
}

/** What the run's status and the caller's role allow. */
export function Actions({ run, hasSchedule, onDone }: Props) {
  const [asked, setAsked] = useState<Action | null>(null);
  if (!may('operator')) return null;
  return (
    <>
      {offered(run, hasSchedule).map((action) => (
        <button
          key={action}
          type="button"
          class={action === 'cancel' ? 'danger' : ''}
          onClick={() => {
            setAsked(action);
          }}
        >
          {WORDS[action].button}…
        </button>
      ))}
      {asked !== null && (
        <Sure
          action={asked}
          run={run}
          onDone={onDone}
          onClose={() => {
            setAsked(null);
          }}
        />
      )}
    </>
  );
}

const RETRIED = ['failed', 'unknown', 'abandoned', 'skipped', 'cancelled'];

function offered({ status, finishedAt, scheduleId, observed }: WholeRun, hasSchedule: boolean): Action[] {
  return [
    ...(RETRIED.includes(status) && !observed && (scheduleId === null || hasSchedule) ? (['retry'] as const) : []),
    ...(finishedAt === null ? (['cancel'] as const) : []),
    ...(hasSchedule ? (['fire'] as const) : []),
  ];
}

interface SureProps {
  action: Action;
  run: WholeRun;
  onDone: () => void;
  onClose: () => void;
}

function Sure({ action, run, onDone, onClose }: SureProps) {
  const { isBusy, refusal, act } = useAct({ quietly: true });
  const [withDependents, setWithDependents] = useState(false);
  const words = WORDS[action];
  const go = async (): Promise<void> => {
    const isDone = await act(async () => await doIt(action, run, withDependents));
    // Also where it was refused: the run may have become another thing meanwhile.
    onDone();
    if (isDone) onClose();
  };
  return (
    <Dialog title={words.question} onClose={onClose}>
      <p>{words.text}</p>
      {action === 'retry' && <Dependents run={run} isOn={withDependents} onChange={setWithDependents} />}
      {refusal !== null && <Refusal text={refusal} />}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
        <button type="button" class="main" disabled={isBusy} onClick={() => void go()}>
          {words.button}
        </button>
      </div>
    </Dialog>
  );
}

interface DependentsProps {
  run: WholeRun;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

/** A box, where there are runs that ended for want of this one. */
function Dependents({ run, isOn, onChange }: DependentsProps) {
  const { data: isOffered = false } = usePoll(`lost dependents ${run.id}`, (signal) => hasLostDependents(run, signal));
  if (!isOffered) return null;
  return (
    <label>
      <input type="checkbox" checked={isOn} onChange={({ currentTarget }) => onChange(currentTarget.checked)} /> Also
      the runs that failed for want of it
    </label>
  );
}

async function doIt(action: Action, { id, scheduleId, payload }: WholeRun, withDependents: boolean): Promise<string> {
  if (action === 'fire') {
    const path = callPath(scheduleId ?? '', '/fire');
    const fired = await call<{ id: string }>('POST', path, { body: { payload } });
    goTo(href(`/runs/${fired.id}`));
    return 'Fired again: this is the new run.';
  }
  await call('POST', `/runs/${id}/${action}`, withDependents ? { body: { dependents: true } } : {});
  if (action === 'cancel') return 'The run is cancelled.';
  return withDependents ? 'It is sent again; those that failed for want of it wait for it.' : 'The run is sent again.';
}
