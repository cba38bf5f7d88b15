import {
  type ExplainedDay,
  type Ruled,
  dayExplainer,
  daysOfMonth,
  hasDays,
} from '../../core/time/explained-days.ts';
import { type Instant, DAY_MS } from '../../core/instant.ts';
import { createPace } from '../../runtime/loop/slices.ts';

export const MAX_FIRES_OF_DAY = 8;

/** So long before a moment its local month can have begun, in ms. */
export const MONTH_REACH_MS = 33 * DAY_MS;

/**
 * Explains the days of the month in which the first moment after `after` lies; nothing, if no rules of days are given. In slices, so that
 * it does not make other requests wait. `answer` says what a fire is like.
 */
export async function explainMonth<Fire>(ruled: Ruled, after: Instant, answer: (at: Instant) => Fire) {
  const { timing } = ruled;
  if (!hasDays(timing)) return {};
  const pace = createPace();
  const explain = dayExplainer(ruled, MAX_FIRES_OF_DAY);
  const days: ReturnType<typeof answerDay<Fire>>[] = [];
  for (const day of daysOfMonth(timing.timezone, after + 1)) {
    await pace();
    days.push(answerDay(explain(day), answer));
  }
  return { days };
}

function answerDay<Fire>(day: ExplainedDay, answer: (at: Instant) => Fire) {
  const { date, verdict, fires, isCut, reason, movedTo, movedFrom } = day;
  return {
    date,
    verdict,
    fires: fires.map(answer),
    ...(isCut && { more: true as const }),
    ...(reason !== null && { reason }),
    ...(movedTo !== null && { movedTo }),
    ...(movedFrom.length > 0 && { movedFrom }),
  };
}
