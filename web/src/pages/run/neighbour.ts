import { ApiProblem, get } from '../../api/http.ts';
import type { WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';

export interface Neighbour {
  id: string;
  /** Null: it is not kept any more. */
  run: WholeRun | null;
}

export async function neighbour(id: string, signal: AbortSignal): Promise<Neighbour> {
  try {
    return { id, run: await get<WholeRun>(`/runs/${id}`, {}, signal) };
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return { id, run: null };
    throw error;
  }
}

/** How many of its dependents are asked: more are taken to be worth an offer. */
const MAX_ASKED = 8;

/** Whether runs ended for want of this one, or may have: they can be retried with it. */
export async function hasLostDependents({ dependents }: WholeRun, signal: AbortSignal): Promise<boolean> {
  for (const id of dependents.slice(0, MAX_ASKED)) {
    const { run } = await neighbour(id, signal);
    if (run?.status === 'failed' && run.error?.kind === 'dependency') return true;
  }
  return dependents.length > MAX_ASKED;
}
