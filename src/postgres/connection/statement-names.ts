/**
 * Which statements of a session are prepared by name, and when their plans are too old.
 *
 * Statements that are prepared by name are parsed once in a session, and planned once where the server finds such a plan as good:
 * of a small batch that is a third of what it costs there. But they belong to a session, and with a pooler between, the next
 * statement may find itself in another one. So they are used where the session is proven to be this process's own (session.ts);
 * nowhere are they needed.
 */
export interface PreparedStatements {
  usesName(text: string, parameters: readonly unknown[]): boolean;
  /** True once in a while: what was planned must be planned again. */
  isTimeToReplan(): boolean;
}

/**
 * Of those that ask for it, those are named that have come before: what never comes again must not stay in the session. Their plans go
 * with it, within an hour or so. A plan that is kept is one for the tables as they were: of a partition that was empty, one that reads
 * all of it. The server looks at them again after it has analyzed them, which may be minutes later.
 */
export function createPreparedStatements(): PreparedStatements {
  const seen = new Set<string>();
  let sincePlanned = 0;
  return {
    usesName: (text, parameters) => {
      sincePlanned += isOfBatch(parameters) ? 1 : OF_A_LOOK;
      if (seen.has(text)) return true;
      if (seen.size >= MAX_SEEN) seen.clear();
      seen.add(text);
      return false;
    },
    isTimeToReplan: () => {
      if (sincePlanned < REPLAN_AFTER) return false;
      sincePlanned = 0;
      return true;
    },
  };
}

const MAX_SEEN = 100;
/** In batches: with these tables grow. Who only looks for work does so every second, and would mostly plan anew. */
const REPLAN_AFTER = 50;
const OF_A_LOOK = 1 / 8;

function isOfBatch(parameters: readonly unknown[]): boolean {
  return parameters.some((one) => typeof one === 'string' && one.length > 1_000);
}
