import { useState } from 'preact/hooks';
import { doneText } from '../../parts/lists/bulk-words.ts';
import { EachOutcomeNote } from '../../parts/lists/each-outcome.tsx';
import type { EachOutcome } from '../../parts/lists/each.ts';
import { ScheduleLink } from '../../parts/links.tsx';
import { toast } from '../../state/toasts.ts';
import { ActOnChosen } from './act-on-chosen.tsx';
import { type ChosenAction, type Row, VERBS } from './chosen-calls.ts';
import { PauseOrResume } from './pause-or-resume.tsx';

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
