import { useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { type Verb, doneText, numbered } from '../../parts/lists/bulk-words.ts';
import type { EachOutcome } from '../../parts/lists/each.ts';
import { ScheduleLink } from '../../parts/links.tsx';
import { toast } from '../../state/toasts.ts';
import { ActOnChosen } from './act-on-chosen.tsx';
import { type ChosenAction, type Row, VERBS } from './chosen-calls.ts';
import { BulkDialog } from '../../parts/lists/bulk.tsx';
import { MY_ZONE } from '../../state/zone.ts';
import { NO_PAUSE, PauseFields } from '../schedule/actions/pause-fields.tsx';

/** What is to be done; without rows to all that match the filter. */
export interface Asked {
  action: ChosenAction;
  rows: readonly Row[];
}

interface Props {
  /** Null: nothing. */
  asked: Asked | null;
  filter: Record<string, unknown>;
  /** It was done, but for these. */
  onDone: (undone: readonly string[]) => void;
  onClose: () => void;
}

/** The dialog of an action, and what it did. */
export function Acts({ asked, filter, onDone, onClose }: Props) {
  const [told, setTold] = useState<{ action: ChosenAction; outcome: EachOutcome } | null>(null);
  const tell = (action: ChosenAction, outcome: EachOutcome): void => {
    const undone = [...outcome.failed.map(({ id }) => id), ...outcome.left];
    setTold(undone.length === 0 ? null : { action, outcome });
    const done = { changed: outcome.done.length, remaining: 0 };
    if (undone.length === 0) toast('done', doneText(done, VERBS[action], 'schedules'));
    onDone(undone);
    onClose();
  };
  return (
    <>
      {told && (
        <EachOutcomeNote
          verb={VERBS[told.action]}
          things="schedules"
          outcome={told.outcome}
          link={(id) => <ScheduleLink id={id} />}
          onDismiss={() => setTold(null)}
        />
      )}
      {asked && asked.rows.length > 0 && (
        <ActOnChosen
          {...asked}
          onDone={(outcome) => {
            tell(asked.action, outcome);
          }}
          onClose={onClose}
        />
      )}
      {asked?.rows.length === 0 && (
        <PauseOrResume
          action={asked.action === 'pause' ? 'pause' : 'resume'}
          filter={filter}
          onDone={() => onDone([])}
          onClose={onClose}
        />
      )}
    </>
  );
}

interface PauseProps {
  action: 'pause' | 'resume';
  filter: Record<string, unknown>;
  onDone: () => void;
  onClose: () => void;
}

const PATHS = ['/reason', '/until'] as const;

/** Of all schedules that match the filter. */
function PauseOrResume({ action, filter, onDone, onClose }: PauseProps) {
  const [pause, setPause] = useState(NO_PAUSE);
  const sent = Object.fromEntries(
    Object.entries(filter).filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0)),
  );
  return (
    <BulkDialog
      verb={action === 'pause' ? 'Pause' : 'Resume'}
      things="schedules"
      path="/schedules/bulk"
      body={{
        action,
        filter: sent,
        ...(pause.reason !== '' && { reason: pause.reason }),
        ...(pause.until !== '' && { until: pause.until }),
      }}
      fieldPaths={PATHS}
      link={(id) => <ScheduleLink id={id} />}
      onDone={onDone}
      onClose={onClose}
      {...(action === 'pause' && {
        fields: (faults) => (
          <PauseFields pause={pause} onChange={setPause} zone={MY_ZONE} faults={faults} paths={PATHS} />
        ),
      })}
    />
  );
}

interface OutcomeProps {
  verb: Verb;
  /** `schedules`. */
  things: string;
  outcome: EachOutcome;
  link: (id: string) => ComponentChildren;
  onDismiss: () => void;
}

/** What an act on several things did, where it did not do it to all of them; it stays until it is dismissed. */
function EachOutcomeNote({ verb, things, outcome, link, onDismiss }: OutcomeProps) {
  const { done, failed, left } = outcome;
  return (
    <div class="warning" role="status">
      <p>
        {doneText({ changed: done.length, remaining: 0 }, verb, things)}
        {failed.length > 0 && ` It was refused for ${numbered(failed.length, things)}:`}
      </p>
      <ul class="sample">
        {failed.map(({ id, why }) => (
          <li key={id}>
            {link(id)}: <span class="user">{why}</span>
          </li>
        ))}
      </ul>
      {left.length > 0 && <p>Not asked for, and still chosen: {numbered(left.length, things)}.</p>}
      <button type="button" onClick={onDismiss}>
        Dismiss
      </button>
    </div>
  );
}
