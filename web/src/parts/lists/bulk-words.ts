const PAST = { Pause: 'Paused', Resume: 'Resumed', Retry: 'Retried', Cancel: 'Cancelled' };

export type Verb = keyof typeof PAST;

interface Did {
  changed: number;
  /** They match still, and are more than one call changes. */
  remaining: number;
}

/** What a bulk action did, once it has: `Retried 3 runs.` */
export function doneText({ changed, remaining }: Did, verb: Verb, things: string): string {
  const did = `${PAST[verb]} ${changed.toLocaleString('en')} ${changed === 1 ? things.slice(0, -1) : things}.`;
  return remaining === 0
    ? did
    : `${did} ${remaining.toLocaleString('en')} are left: do it again for the next of them.`;
}
