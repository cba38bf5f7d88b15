import type { ComponentChildren } from 'preact';
import { call } from '../../api/http.ts';
import type { ActOnRunsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { useAct } from '../../state/act.ts';
import { usePoll } from '../../state/poll.ts';
import { Dialog } from '../forms/dialog.tsx';
import { OtherFaults } from '../forms/field.tsx';
import { Loaded, Refusal } from '../states.tsx';
import { type Verb, doneText } from './bulk-words.ts';

interface Props {
  /** As the button says it. */
  verb: Verb;
  /** `runs`. */
  things: string;
  /** `/runs/bulk`. */
  path: string;
  /** What is sent, but for `dryRun`. */
  body: Record<string, unknown>;
  /** Fields of the form, with their faults. */
  fields?: (faults: ReturnType<typeof useAct>['faults']) => ComponentChildren;
  fieldPaths?: readonly string[];
  link: (id: string) => ComponentChildren;
  onDone: () => void;
  onClose: () => void;
}

/** The answer for schedules is the same without `remaining`. */
type BulkAnswer = Omit<ActOnRunsResponse, 'remaining'> & { remaining?: number };

/** Counting again and again would only load the database. */
const COUNT_EVERY_MS = 60_000;

/** What an action on all that match a filter would do, with a sample of them, and then does it. */
export function BulkDialog({ verb, things, path, body, fields, fieldPaths = [], link, onDone, onClose }: Props) {
  const acting = useAct({ quietly: true });
  const question = { action: body['action'], filter: body['filter'] };
  const counted = usePoll(
    JSON.stringify(question),
    (signal) => call<BulkAnswer>('POST', path, { body: { ...question, dryRun: true }, signal }),
    { everyMs: COUNT_EVERY_MS },
  );
  const act = async (): Promise<void> => {
    const wasDone = await acting.act(async () => {
      const { changed, remaining = 0 } = await call<BulkAnswer>('POST', path, { body });
      return doneText({ changed, remaining }, verb, things);
    });
    if (!wasDone) return;
    onDone();
    onClose();
  };
  return (
    <Dialog title={`${verb} ${things} that match the filter`} onClose={onClose}>
      <Loaded from={counted}>
        {({ matched, sample }) => (
          <>
            <p>
              <strong>{matched.toLocaleString('en')}</strong> {things} match
              {sample.length > 0 && (matched > sample.length ? ', among them:' : ':')}
            </p>
            <ul class="sample">
              {sample.map((id) => (
                <li key={id}>{link(id)}</li>
              ))}
            </ul>
            {fields?.(acting.faults)}
            <OtherFaults faults={acting.faults} paths={fieldPaths} />
            {acting.refusal !== null && acting.faults.length === 0 && <Refusal text={acting.refusal} />}
            <div class="actions">
              <button type="button" onClick={onClose}>
                Close
              </button>
              <button type="button" class="main" disabled={acting.isBusy || matched === 0} onClick={() => void act()}>
                {verb}
              </button>
            </div>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}
