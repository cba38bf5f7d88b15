interface Instance {
  alive: boolean;
  startedAt: string;
  heartbeatAt: string;
}

/** While none of these instances was up around a moment; null: one was, or nothing is known of those before or after it. */
export function nobodyUp(instances: readonly Instance[], moment: string): { from: string; to: string } | null {
  const at = Date.parse(moment);
  const isBefore = ({ alive, heartbeatAt }: Instance) => !alive && Date.parse(heartbeatAt) < at;
  const isAfter = ({ startedAt }: Instance) => Date.parse(startedAt) > at;
  if (!instances.every((one) => isBefore(one) || isAfter(one))) return null;
  const ends = instances.filter(isBefore).map(({ heartbeatAt }) => heartbeatAt);
  const begins = instances.filter(isAfter).map(({ startedAt }) => startedAt);
  const [from, to] = [ends.sort().at(-1), begins.sort().at(0)];
  return from === undefined || to === undefined ? null : { from, to };
}
