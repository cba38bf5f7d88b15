import type { Schedule } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { differencesOf } from '../../parts/differences/difference.ts';
import { Differences } from '../../parts/differences/differences.tsx';

interface Props {
  /** What was opened. */
  base: Schedule;
  /** What somebody else has made of it. */
  theirs: Schedule;
  onKeepBoth: () => void;
  onTakeTheirs: () => void;
}

/** Nothing was saved, since it would have undone what somebody else has saved: what that is, and how to go on. */
export function ChangedMeanwhile({ base, theirs, onKeepBoth, onTakeTheirs }: Props) {
  return (
    <section class="card" role="alert">
      <h2>Somebody has changed it meanwhile</h2>
      <p class="field">
        You opened version {base.version}; it is version {theirs.version} now. Nothing of yours is saved yet.
      </p>
      <Differences
        label="What was changed meanwhile"
        differences={differencesOf(base, theirs)}
        heads={['When you opened it', 'Now']}
      />
      <div class="actions">
        <button type="button" onClick={onTakeTheirs}>
          Discard my changes
        </button>
        <button type="button" class="main" onClick={onKeepBoth}>
          Put my changes on top
        </button>
      </div>
    </section>
  );
}
