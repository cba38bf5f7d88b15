import type { InstanceState } from './instance-state.ts';
import type { Turning } from './loop/loop.ts';

/** A pass that takes longer is a fault of `/readyz`, and a loop that fails for longer a warning. */
export const LOOP_LIMIT_MS = 30_000;

/** Usually it is done at once. */
const MAX_EFFECT_SECONDS = 60;

/** What an operator should know, and what does not stop the work. */
export function warningsOf(loops: readonly Turning[], state: InstanceState): string[] {
  const { strandedRuns, effectsFailing, zoneData, missingKeys, missedLately } = state;
  const warnings = [...troublesOf(state), ...failingOf(loops), ...setAsideOf(state)];
  if (strandedRuns > 0) {
    warnings.push(
      `${strandedRuns} runs are claimed by an instance that is silent; other instances take them over once it is declared dead`,
    );
  }
  if (effectsFailing > 0) {
    warnings.push(
      `${effectsFailing} effects of ended runs failed and will be retried; the log names the runs and says why`,
    );
  }
  if (state.oldestEffectSeconds > MAX_EFFECT_SECONDS) {
    warnings.push(
      `effects of ended runs are late: the oldest has waited for ${Math.round(state.oldestEffectSeconds)} s`,
    );
  }
  warnings.push(...ofSchedules(state));
  const missed = missedLately();
  if (missed > 0) {
    warnings.push(
      `${missed} fires were missed in the last ten minutes; the log names the schedules, and their occurrences say what became of each fire`,
    );
  }
  warnings.push(...untoldOf(state));
  if (zoneData.length > 1) warnings.push(mixedZoneData(zoneData));
  if (missingKeys.length > 0) {
    warnings.push(
      `schedules or connections have secrets that are encrypted with keys missing in FIRELOCK_SECRET_KEYS (${missingKeys.length}): ` +
        'their targets cannot be called; the log names the keys',
    );
  }
  return warnings;
}

/** Of calls of the API as well: the loops may find nothing to write. */
function troublesOf({ troubles }: InstanceState): string[] {
  return troubles()
    .filter(({ lasts }) => lasts)
    .map(({ words }) => `${words}: work failed in the last minute, and the log has the reason`);
}

function ofSchedules(state: InstanceState): string[] {
  const { schedulesLate, schedulesAhead, schedulesNotInFile, calendarsEnding } = state;
  const late = `${schedulesLate} schedules are late: no run has succeeded in time; GET /api/v1/schedules?late=true names them`;
  const ending = `${calendarsEnding} calendars that schedules exclude end within 90 days, or have ended (validUntil): add days, and move it on; GET /api/v1/alerts?open=true names the schedules`;
  const ahead = `${schedulesAhead} schedules were planned while the clock of the database was ahead, and are silent until it comes there again; \`firelock resume --from-now\` sets them back`;
  const extra = `${schedulesNotInFile} schedules of the set of FIRELOCK_SCHEDULES_FILE were not in the file at the start of this instance, and go on; the log names them`;
  return [
    ...(schedulesLate > 0 ? [late] : []),
    ...(calendarsEnding > 0 ? [ending] : []),
    ...(schedulesAhead > 0 ? [ahead] : []),
    ...(schedulesNotInFile > 0 ? [extra] : []),
  ];
}

function failingOf(loops: readonly Turning[]): string[] {
  return loops
    .filter((loop) => loop.failingMs() > LOOP_LIMIT_MS)
    .map(
      (loop) =>
        `the ${loop.name} loop has failed for ${Math.round(loop.failingMs() / 1000)} s; the log says why`,
    );
}

function setAsideOf({ rowsSetAside }: InstanceState): string[] {
  return [...rowsSetAside]
    .filter(([, count]) => count > 0)
    .map(
      ([loop, count]) =>
        `the ${loop} loop could not write ${count} rows, and tries them again later; the log names them`,
    );
}

function untoldOf({ notifiers: { undelivered, waiting } }: InstanceState): string[] {
  const counted = ({ length }: readonly string[], rest: string) =>
    length === 0 ? [] : [`notifiers ${rest}: ${length}`];
  return [
    ...counted(undelivered, 'whose last message was not delivered; the log says why'),
    ...counted(waiting, 'of which a message has waited for longer than five minutes'),
  ];
}

/** The consequence if living instances differ in their time zone data. */
function mixedZoneData(versions: readonly string[]): string {
  return (
    `living instances have different time zone data (${versions.join(', ')}) and may plan fires at different times in ` +
    'zones whose rules differ; finish the rollout'
  );
}
