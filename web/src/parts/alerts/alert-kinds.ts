import type { Alert } from '../../../../clients/typescript/src/generated/types.gen.ts';

export type AlertKind = Alert['kind'];

/** Each kind, and what is wrong with a schedule that has such an alert. */
export const ALERT_KINDS: readonly (readonly [kind: AlertKind, meaning: string])[] = [
  ['failed', 'a run ended failed, unknown or abandoned'],
  ['late', 'no run has succeeded in time'],
  ['unstarted', 'a run did not begin in time'],
  ['slow', 'a run did not end in time'],
  ['tooFast', 'a run succeeded too fast'],
  ['result', 'a run succeeded without the result that is expected'],
  ['missed', 'a fire was not made in time'],
  ['paused', 'firelock has paused it'],
  ['error', 'it cannot be planned'],
  ['calendar', 'a calendar of it ends soon, or has ended'],
];

export const MEANING = Object.fromEntries(ALERT_KINDS) as Record<AlertKind, string>;
