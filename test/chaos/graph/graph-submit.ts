import { setTimeout as sleep } from 'node:timers/promises';
import type { GraphApi } from './graph-api.ts';
import { COMPLETION_TIMEOUT_SECONDS } from './checker/graph-check-leases.ts';
import type { Asked } from './checker/graph-history.ts';
import { QUEUE } from './graph-workers.ts';

interface SubmitOptions {
  api: GraphApi;
  /** Of the receiver. */
  url: string;
  /** Wait between two calls for each run of the first. */
  paceMs: number;
  /** After that nothing more is asked for: on a slow machine there are fewer. */
  until: number;
  /** After that what was asked for and never answered stays unknown. */
  giveUpAt: number;
  say: (line: string) => void;
}

const AGAIN_MS = 200;

/** Asks for them, call by call; a call that is not answered is repeated with the same keys until it is. */
export async function submitGraph(batches: readonly Asked[][], options: SubmitOptions): Promise<void> {
  const ids = new Map<string, string>();
  for (const batch of batches) {
    if (performance.now() >= options.until) {
      options.say(`the time was up before ${batch[0]?.ref ?? ''}`);
      return;
    }
    await submit(batch, ids, options);
    options.say(`asked for ${batch.length}: ${batch[0]?.ref ?? ''} …`);
    await sleep(options.paceMs * batch.length);
  }
}

async function submit(
  batch: readonly Asked[],
  ids: Map<string, string>,
  options: SubmitOptions,
): Promise<void> {
  const { api, url, giveUpAt } = options;
  const own = new Set(batch.map(({ ref }) => ref));
  const items = batch.map((run) => {
    return {
      ...itemOf(run, url),
      dependsOn: run.dependsOn.map((ref) => (own.has(ref) ? ref : (ids.get(ref) ?? ref))),
    };
  });
  setOutcome(batch, 'unknown');
  while (performance.now() < giveUpAt) {
    const answer = await api.post('/runs/batch', { items });
    if (answer?.status === 201 || answer?.status === 200) {
      const accepted = answer.body as { items: { ref: string; id: string }[] };
      for (const { ref, id } of accepted.items) ids.set(ref, id);
      for (const run of batch) run.id = ids.get(run.ref) ?? null;
      setOutcome(batch, 'accepted');
      return;
    }
    if (answer && answer.status !== 503) {
      api.refusals.push(`batch of ${batch[0]?.ref ?? ''}: ${answer.status} ${JSON.stringify(answer.body)}`);
      if (answer.status < 500) {
        setOutcome(batch, 'refused');
        return;
      }
    }
    await sleep(AGAIN_MS);
  }
}

function setOutcome(batch: readonly Asked[], outcome: Asked['outcome']): void {
  for (const run of batch) run.outcome = outcome;
}

function itemOf({ ref, kind, onDependencyFailure }: Asked, url: string): object {
  return {
    ref,
    key: ref,
    payload: { ref },
    onDependencyFailure,
    retry: { maxAttempts: 100, minBackoffSeconds: 0.1, maxBackoffSeconds: 1 },
    ...(kind === 'pull'
      ? { target: { type: 'pull', queue: QUEUE } }
      : { target: { type: 'http', url }, timeoutSeconds: 5 }),
    ...(kind === 'callback'
      ? { completion: 'callback', completionTimeoutSeconds: COMPLETION_TIMEOUT_SECONDS }
      : {}),
  };
}
