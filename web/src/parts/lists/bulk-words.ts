const PAST = {
  Pause: 'Paused',
  Resume: 'Resumed',
  Retry: 'Retried',
  Cancel: 'Cancelled',
  Label: 'Labelled',
  Delete: 'Deleted',
};

export type Verb = keyof typeof PAST;

interface Did {
  changed: number;
  /** They match still, and are more than one call changes. */
  remaining: number;
}

/** What a bulk action did, once it has: `Retried 3 runs.` */
export function doneText({ changed, remaining }: Did, verb: Verb, things: string): string {
  const did = `${PAST[verb]} ${numbered(changed, things)}.`;
  return remaining === 0 ? did : `${did} ${remaining.toLocaleString('en')} are left: do it again for the next of them.`;
}

/** `1 run`, `2,500 runs`. */
export function numbered(count: number, things: string): string {
  return `${count.toLocaleString('en')} ${count === 1 ? things.slice(0, -1) : things}`;
}
