import type { Outcome } from '../core/runs/attempts/outcome.ts';
import type { HttpTarget, PagerDutyTarget } from '../core/schedules/schedule.ts';
import type { Attempt, CancelAnswer, LookupAnswer, TargetKind } from './target.ts';

/** Sends events of PagerDuty's Events API v2 as HTTP requests, and adds the routing key, which no run has in its payload. */
export function createPagerDutyTarget(
  http: TargetKind<HttpTarget<string>>,
): TargetKind<PagerDutyTarget<string>> {
  return new PagerDutyKind(http);
}

class PagerDutyKind implements TargetKind<PagerDutyTarget<string>> {
  readonly type = 'pagerduty';
  readonly #http: TargetKind<HttpTarget<string>>;

  constructor(http: TargetKind<HttpTarget<string>>) {
    this.#http = http;
  }

  laneOf({ target }: PagerDutyTarget): string {
    return this.#http.laneOf(target);
  }

  deliver(
    { target, routingKey }: PagerDutyTarget<string>,
    attempt: Attempt,
    signal: AbortSignal,
  ): Promise<Outcome> {
    return this.#http.deliver(target, { ...attempt, payload: withKey(attempt.payload, routingKey) }, signal);
  }

  hasLookup({ target }: PagerDutyTarget): boolean {
    return this.#http.hasLookup(target);
  }

  lookup({ target }: PagerDutyTarget<string>, attempt: Attempt, signal: AbortSignal): Promise<LookupAnswer> {
    return this.#http.lookup(target, attempt, signal);
  }

  hasCancel({ target }: PagerDutyTarget): boolean {
    return this.#http.hasCancel(target);
  }

  cancel({ target }: PagerDutyTarget<string>, attempt: Attempt, signal: AbortSignal): Promise<CancelAnswer> {
    return this.#http.cancel(target, attempt, signal);
  }

  /** The HTTP kind closes itself. */
  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** As the first member of the object: the others stay as they are written. */
function withKey(payload: string | null, routingKey: string): string {
  const rest = (payload ?? '{}').trimStart().replace(/^\{\s*/, '');
  return `{"routing_key":${JSON.stringify(routingKey)}${rest.startsWith('}') ? '' : ','}${rest}`;
}
