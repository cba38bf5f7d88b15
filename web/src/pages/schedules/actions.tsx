import { href, pageAt } from '../../state/route.ts';
import { may } from '../../state/session.ts';
import { type ChosenAction, VERBS } from './chosen-calls.ts';

interface Props {
  isFiltered: boolean;
  /** How many schedules are chosen one by one. */
  chosen: number;
  onChoose: (action: ChosenAction) => void;
  onChooseNone: () => void;
}

const OF_CHOSEN: readonly ChosenAction[] = ['pause', 'resume', 'label', 'delete'];

/** What an admin does to several schedules: those that are chosen, else all that match the filter. */
export function Actions({ isFiltered, chosen, onChoose, onChooseNone }: Props) {
  if (!may('admin')) return null;
  const isOffered = isFiltered || chosen > 0;
  const why = 'Choose some of them, or filter: then it does it to all that match the filter';
  return (
    <>
      {chosen > 0 && (
        <button type="button" class="plain" title="Choose none" onClick={onChooseNone}>
          {chosen} chosen ✕
        </button>
      )}
      {OF_CHOSEN.slice(0, chosen > 0 ? undefined : 2).map((action) => (
        <button
          key={action}
          type="button"
          class={action === 'delete' ? 'danger' : ''}
          disabled={!isOffered}
          title={isOffered ? undefined : why}
          onClick={() => onChoose(action)}
        >
          {VERBS[action]}…
        </button>
      ))}
      <NewSchedule />
    </>
  );
}

const NEW = '/schedules/new';

export function NewSchedule() {
  if (pageAt(NEW) === null) return null;
  return (
    <a class="button main" href={href(NEW)}>
      New schedule
    </a>
  );
}
