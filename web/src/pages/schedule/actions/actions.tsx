import type { ComponentType } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../../../api/http.ts';
import type { Schedule } from '../../../../../clients/typescript/src/generated/types.gen.ts';
import { useAct } from '../../../state/act.ts';
import { href } from '../../../state/route.ts';
import { may } from '../../../state/session.ts';
import { callPath, pagePath } from '../../../state/schedule-paths.ts';
import { BackfillDialog } from './backfill.tsx';
import { DeleteDialog } from './delete.tsx';
import type { DialogProps } from './dialog-props.ts';
import { FireDialog } from './fire.tsx';
import { PauseDialog } from './pause.tsx';

const DIALOGS: Record<'fire' | 'pause' | 'backfill' | 'delete', ComponentType<DialogProps>> = {
  fire: FireDialog,
  pause: PauseDialog,
  backfill: BackfillDialog,
  delete: DeleteDialog,
};

/** What may be done with the schedule, by this caller. */
export function Actions({ schedule, onDone }: { schedule: Schedule; onDone: () => void }) {
  const [open, setOpen] = useState<keyof typeof DIALOGS | null>(null);
  const { act, isBusy } = useAct();
  const observesForEver = schedule.observe?.until === null;
  const resume = () =>
    act(async () => {
      await call('PATCH', callPath(schedule.id), { body: { enabled: true } });
      onDone();
      return 'It is resumed. What was due meanwhile is not made up for.';
    });
  const Shown = open === null ? null : DIALOGS[open];
  return (
    <>
      {may('operator') && schedule.target !== null && (
        <button type="button" class="main" onClick={() => setOpen('fire')}>
          Fire now…
        </button>
      )}
      {may('admin') && schedule.enabled && (
        <button type="button" onClick={() => setOpen('pause')}>
          Pause…
        </button>
      )}
      {may('admin') && !schedule.enabled && (
        <button type="button" disabled={isBusy} onClick={() => void resume()}>
          Resume
        </button>
      )}
      {may('operator') && schedule.after === null && !observesForEver && (
        <button type="button" onClick={() => setOpen('backfill')}>
          Backfill…
        </button>
      )}
      {may('admin') && (
        <>
          <a class="button" href={href(pagePath(schedule.id, '/edit'))}>
            Edit
          </a>
          <button type="button" class="danger" onClick={() => setOpen('delete')}>
            Delete…
          </button>
        </>
      )}
      {Shown && <Shown schedule={schedule} onDone={onDone} onClose={() => setOpen(null)} />}
    </>
  );
}
