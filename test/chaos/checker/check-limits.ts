import { FREEZES, disturbed } from './check-deliveries.ts';
import type { Arrival, History } from './history.ts';
import { slackOf } from './slack.ts';
import { type Report, isoText } from './violations.ts';

/** When a connection is reset, its receiver may see so much later than the sender; an answer is out before the sender has it. */
const RESET_WITHIN_MS = 100;

/** While this arrival was under way, by what is certain: its run had a place of its limit all the time. */
interface Taken {
  runId: string;
  from: number;
  to: number;
}

/**
 * Of the runs of one limit never more than it allows were under way at once, as the receiver saw them. A run counts once, however many
 * senders it has had. An attempt is over when it was answered, given up or out of time, or when its run had ended (deleted, say).
 */
export function checkLimits(history: History, report: Report): void {
  const limitOf = new Map(
    history.edits.flatMap(({ marker, definition }) =>
      marker === null || definition === null ? [] : [[marker, definition]],
    ),
  );
  for (const [limit, most] of Object.entries(history.limits)) {
    const taken = takenBy(history, ({ marker }) => limitOf.get(marker)?.limit === limit, limitOf);
    for (const { from } of taken) {
      const together = new Set(
        taken.filter((one) => one.from <= from && from < one.to).map(({ runId }) => runId),
      );
      if (together.size > most)
        report.add(
          'limit',
          `${together.size} runs of ${limit} (${most}) at ${isoText(from)}: ${[...together].join(', ')}`,
        );
    }
  }
}

function takenBy(
  history: History,
  isOfLimit: (arrival: Arrival) => boolean,
  definitions: ReadonlyMap<string, { timeoutSeconds: number }>,
): Taken[] {
  const ends = new Map(history.dump.runs.map(({ id, endedAt }) => [id, endedAt ?? Infinity]));
  const givenUp = new Map(
    history.dump.attempts.map(({ runId, attempt, finishedAt }) => [`${runId}/${attempt}`, finishedAt]),
  );
  return history.arrivals.filter(isOfLimit).flatMap((arrival): Taken[] => {
    const { runId, attempt, at, answeredAt, delivered, sender, marker } = arrival;
    // An instance that was frozen between its last look at the lease and the first byte sends what others have sent meanwhile.
    if (disturbed(history, sender, at - 1_000, at, FREEZES)) return [];
    const seen = delivered
      ? answeredAt
      : answeredAt - RESET_WITHIN_MS - slackOf(history, answeredAt, RESET_WITHIN_MS);
    const outOfTime = at + (definitions.get(marker)?.timeoutSeconds ?? 0) * 1_000 - RESET_WITHIN_MS;
    const to = Math.min(
      seen,
      outOfTime,
      ends.get(runId) ?? at,
      givenUp.get(`${runId}/${attempt}`) ?? Infinity,
    );
    return to > at ? [{ runId, from: at, to }] : [];
  });
}
