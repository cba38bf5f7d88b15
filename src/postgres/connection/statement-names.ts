/**
 * Which statements of a session are prepared by name, and when their plans are too old.
 *
 * Statements that are prepared by name are parsed once in a session, and planned once if the server finds such a plan as good. That
 * saves a third of what a small batch costs there. But they belong to a session, and with a pooler between, the next statement may run
 * in another session. So they are used only if the session is proven to be this process's own (session.ts). They are never needed.
 */
export interface PreparedStatements {
  usesName(text: string, parameters: readonly unknown[]): boolean;
  /** True once in a while: plans must be made again. */
  isTimeToReplan(): boolean;
}

/**
 * A statement that asks for a name gets it when it is repeated: a statement that comes only once must not stay in the
 * session. The plans end with the session, within an hour or so. A plan that is kept fits the tables as they were: for
 * a partition that was empty, it reads the whole partition. The server plans again after it has analyzed the tables,
 * which may be minutes later.
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
/** In batches, since tables grow with them. A loop that only looks for work runs every second, and would otherwise plan anew too often. */
const REPLAN_AFTER = 50;
const OF_A_LOOK = 1 / 8;

function isOfBatch(parameters: readonly unknown[]): boolean {
  return parameters.some((one) => typeof one === 'string' && one.length > 1_000);
}
