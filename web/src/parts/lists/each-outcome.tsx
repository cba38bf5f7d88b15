import type { ComponentChildren } from 'preact';
import { type Verb, doneText, numbered } from './bulk-words.ts';
import type { EachOutcome } from './each.ts';

interface Props {
  verb: Verb;
  /** `schedules`. */
  things: string;
  outcome: EachOutcome;
  link: (id: string) => ComponentChildren;
  onDismiss: () => void;
}

/** What an act on several things did, where it did not do it to all of them; it stays until it is dismissed. */
export function EachOutcomeNote({ verb, things, outcome, link, onDismiss }: Props) {
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
