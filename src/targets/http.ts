import { type Outcome, rejectionError } from '../core/runs/attempts/outcome.ts';
import type { HttpTarget } from '../core/schedules/schedule.ts';
import { newSpanId } from '../runtime/span-id.ts';
import { type Judging, lookupAnswerOf, unclear } from './http-answer.ts';
import { type HttpTargetDeps, type SendOptions, HttpCalls } from './http-calls.ts';
import { parseAddress, prepareCall, prepareTarget } from './http-request.ts';
import type { Attempt, CancelAnswer, LookupAnswer, TargetKind } from './target.ts';

/** Hands runs off as HTTP/1.1 requests over kept connections, each with one deadline from name resolution to the answer's last byte. */
export function createHttpTarget(deps: HttpTargetDeps): TargetKind<HttpTarget<string>> {
  return new HttpTargetKind(deps);
}

/** The rules of a target are about the handoff itself. */
const BESIDE: Judging = { rules: null, delivery: 'atLeastOnce', asked: false };

class HttpTargetKind implements TargetKind<HttpTarget<string>> {
  readonly type = 'http';
  readonly #calls: HttpCalls;

  constructor(deps: HttpTargetDeps) {
    this.#calls = new HttpCalls(deps);
  }

  /** The connection, or the URL's origin. An invalid URL, which only another program can store, gets a lane of its own. */
  laneOf({ connection, url }: HttpTarget): string {
    if (connection !== null) return `connection ${connection}`;
    try {
      return parseAddress(url).origin;
    } catch {
      return url;
    }
  }

  prepare(attempt: Attempt, signal: AbortSignal): Promise<Outcome | null> {
    return this.#calls.logIn(attempt, signal);
  }

  deliver(target: HttpTarget<string>, attempt: Attempt, signal: AbortSignal): Promise<Outcome> {
    const freshConnection = attempt.delivery === 'atMostOnce';
    const prepare = () => prepareTarget(target, attempt.connection);
    const { spanId = newSpanId() } = attempt;
    const { delivery, expectedResult: expected = null } = attempt;
    const judging = { rules: target.outcome, delivery, asked: false, expected };
    return this.#calls.send(attempt, { call: target, prepare, spanId, judging, freshConnection, signal });
  }

  hasLookup({ lookup }: HttpTarget): boolean {
    return lookup !== null;
  }

  async lookup(target: HttpTarget<string>, attempt: Attempt, signal: AbortSignal): Promise<LookupAnswer> {
    const { lookup } = target;
    if (lookup === null) return unclear({ kind: 'network', message: 'none is configured' });
    const prepare = () => prepareCall(lookup, target, attempt.connection);
    const judging = { ...BESIDE, asked: true, expected: attempt.expectedResult ?? null };
    return lookupAnswerOf(await this.#beside(attempt, { call: lookup, prepare, judging, signal }));
  }

  hasCancel({ cancel }: HttpTarget): boolean {
    return cancel !== null;
  }

  async cancel(target: HttpTarget<string>, attempt: Attempt, signal: AbortSignal): Promise<CancelAnswer> {
    const { cancel } = target;
    if (cancel === null) return { kind: 'network', message: 'the target has no cancel call' };
    const prepare = () => prepareCall(cancel, target, attempt.connection);
    const outcome = await this.#beside(attempt, { call: cancel, prepare, judging: BESIDE, signal });
    if (outcome.kind === 'accepted') return null;
    return outcome.kind === 'rejected' ? rejectionError(outcome) : outcome.error;
  }

  close(): Promise<void> {
    return this.#calls.close();
  }

  /** A call beside the attempt itself: another span. */
  #beside(attempt: Attempt, options: Omit<SendOptions, 'freshConnection' | 'spanId'>): Promise<Outcome> {
    return this.#calls.send(attempt, { ...options, spanId: newSpanId(), freshConnection: false });
  }
}
