import type { Caller } from '../client.ts';
import type { ClaimedRun } from '../generated/types.gen.ts';

/** What a worker says of one attempt. If the run has gone on without it, that is refused (409). */
export interface Speaker {
  attempt: number;
  workerId: string;
}

export interface Claim {
  workerId: string;
  max: number;
  leaseSeconds: number;
  waitSeconds: number;
}

/** The five calls of a worker. */
export type Calls = ReturnType<typeof createCalls>;

export function createCalls(call: Caller) {
  const act = (action: string) => (id: string, body: object) =>
    call({ method: 'POST', path: `/api/v1/runs/{id}/${action}`, bodyType: 'application/json' }, { id, body });
  const append = { method: 'POST', path: '/api/v1/runs/{id}/log', bodyType: 'text/plain' };
  const claim = {
    method: 'POST',
    path: '/api/v1/queues/{queue}/claim',
    bodyType: 'application/json',
  };
  return {
    claim: async (queue: string, body: Claim, signal: AbortSignal) =>
      ((await call(claim, { queue, body }, { signal })) as { items: ClaimedRun[] }).items,
    heartbeat: act('heartbeat'),
    complete: act('complete'),
    release: act('release'),
    append: (id: string, { attempt, workerId }: Speaker, offset: number, text: string) =>
      call(append, { id, attempt, offset, workerId, body: text }),
  };
}
