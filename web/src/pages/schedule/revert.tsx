import { call } from '../../api/http.ts';
import type { Schedule, ScheduleVersion } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { differencesOf } from '../../parts/differences/difference.ts';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { Differences } from '../../parts/differences/differences.tsx';
import { OtherFaults } from '../../parts/forms/field.tsx';
import { Refusal } from '../../parts/states.tsx';
import { stringifyJson } from '../../api/json.ts';
import { useAct } from '../../state/act.ts';
import { href } from '../../state/route.ts';
import { callPath, pagePath } from '../../state/schedule-paths.ts';

interface Props {
  id: string;
  /** Null: it is deleted. */
  current: Schedule | null;
  to: ScheduleVersion;
  onClose: () => void;
  onDone: () => void;
}

/** Writes an old definition as a new version, once the user has seen what that changes. */
export function RevertDialog({ id, current, to, onClose, onDone }: Props) {
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const revert = async (): Promise<void> => {
    const isDone = await act(async () => {
      await call('PUT', callPath(id), {
        body: to.schedule,
        headers: current ? { 'if-match': `"${current.version}"` } : { 'if-none-match': '*' },
      });
      return current ? `It is again as it was in version ${to.version}.` : 'It is back, as a new schedule.';
    });
    if (!isDone) return;
    onDone();
    onClose();
  };
  return (
    <Dialog title={current ? `Revert to version ${to.version}` : 'Bring it back'} onClose={onClose}>
      <p class="field">
        {current
          ? 'This writes a new version with the fields of the old one. What was due so far fires as it is now.'
          : `This makes a new schedule with the fields of version ${to.version}.`}
      </p>
      {current && (
        <Differences
          label="What changes"
          differences={differencesOf(current, to.schedule)}
          heads={['Now', `Version ${to.version}`]}
        />
      )}
      {refusal !== null && <Refusal text={refusal} />}
      <OtherFaults faults={faults} paths={[]} />
      {refusal !== null && hasSecrets(to) && (
        <p class="warning">
          firelock shows no secret and no value of a header: it answers ***. It keeps the stored value where the address
          of the target stays on the same origin; otherwise the value must be given again.{' '}
          <a href={formAddress(id, to, current !== null)}>Open this version in the form</a>
        </p>
      )}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="main" disabled={isBusy} onClick={() => void revert()}>
          {current ? 'Revert' : 'Bring it back'}
        </button>
      </div>
    </Dialog>
  );
}

function formAddress(id: string, { version }: ScheduleVersion, isThere: boolean): string {
  const query = { version: String(version) };
  return isThere ? href(pagePath(id, '/edit'), query) : href('/schedules/new', { ...query, of: id });
}

function hasSecrets({ schedule: { target } }: ScheduleVersion): boolean {
  return stringifyJson(target).includes('"***"');
}
