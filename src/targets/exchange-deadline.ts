interface Expiring {
  expire(): void;
}

/** A longer timer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export function startDeadline(exchange: Expiring, leftMs: number): NodeJS.Timeout {
  return setTimeout(onDeadline, Math.min(leftMs, MAX_TIMER_MS), exchange);
}

/** By setImmediate, so that an answer which arrived while the loop was busy is read first. */
function onDeadline(exchange: Expiring): void {
  setImmediate(expire, exchange);
}

function expire(exchange: Expiring): void {
  exchange.expire();
}
