import { type OneOffHandoff, type OneOffRun, definitionUid } from '../../core/runs/one-off-run.ts';
import type { Target } from '../../core/schedules/schedule.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { acceptRuns } from '../../operations/runs/submit-one-off-runs.ts';
import { CannotAccept } from '../../operations/runs/one-off-links.ts';
import { dependencyNamed } from './dependency-faults.ts';
import { type Fault, invalid } from '../http/problem.ts';
import type { OneOffItemInput, OneOffRunInput } from './one-off-schemas.ts';
import { unmaskTarget } from '../targets/inputs.ts';
import { sealed } from '../targets/sealing.ts';

/** Faults of what was sent, to be answered with 400 or 422. */
export interface OneOffFaults {
  invalid: Fault[];
  impossible: Fault[];
}

interface OneOffContext {
  refs: ReadonlySet<string>;
  secrets: KeyRing;
  faults: OneOffFaults;
}

/**
 * `payload` is the source text that was sent; JSON's null is no payload. Values that cannot be used as sent are added
 * to `faults`.
 */
export function oneOffRun(
  input: OneOffRunInput | OneOffItemInput,
  payload: string | undefined,
  { refs, secrets, faults }: OneOffContext,
): OneOffRun {
  const { key, runAt, onDependencyFailure, priority, limit } = input;
  const { retry, timeoutSeconds, completion, completionTimeoutSeconds, delivery } = input;
  // There is no stored definition with secret values to keep, so all values are those that were sent.
  const target = unmaskTarget(input.target, null, faults.invalid) as Target<string>;
  const given: OneOffHandoff<string> = {
    target,
    retry,
    timeoutSeconds,
    completion,
    completionTimeoutSeconds,
    delivery,
  };
  const uid = definitionUid(given, secrets);
  return {
    ref: 'ref' in input ? input.ref : null,
    handoff: { ...given, target: sealed(target, { secrets, uid }, null, faults.impossible) },
    definitionUid: uid,
    payload: payload === undefined || payload === 'null' ? null : payload,
    key,
    runAt,
    dependsOn: input.dependsOn.map((entry) => dependencyNamed(entry, refs)),
    onDependencyFailure,
    priority,
    limit,
  };
}

/**
 * `pathOf` gives the place of a run in the body.
 * @throws Problem 422 with all faults of all runs
 */
export async function acceptOrRefuse(
  deps: Parameters<typeof acceptRuns>[0],
  asked: readonly OneOffRun[],
  pathOf: (index: number) => string,
): Promise<{ id: string; created: boolean }[]> {
  try {
    return await acceptRuns(deps, asked);
  } catch (error) {
    if (!(error instanceof CannotAccept)) throw error;
    throw invalid(
      error.faults.map(({ index, path, message }) => ({ path: pathOf(index) + path, message })),
      422,
    );
  }
}
