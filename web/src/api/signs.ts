import { ApiProblem, callRaw } from './http.ts';
import type { Readiness } from '../../../clients/typescript/src/generated/types.gen.ts';

/** What this instance says of itself outside of the API. Null: it says so on a port of its own. */
interface Signs {
  readiness: Readiness;
  /** By name, with its labels: `firelock_runs_open{status="pending"}`. */
  gauges: ReadonlyMap<string, number>;
}

/** The daemon writes so into the document, so that nothing is asked in vain; a proxy may hide them too. */
let areElsewhere = document.querySelector('base[data-signs]') !== null;

export async function askSigns(signal: AbortSignal): Promise<Signs | null> {
  if (areElsewhere) return null;
  try {
    const [{ body: readiness }, { body: metrics }] = await Promise.all([
      callRaw<Readiness>('GET', '/readyz', { signal }, [503]),
      callRaw<string>('GET', '/metrics', { signal }),
    ]);
    return { readiness, gauges: gaugesIn(metrics) };
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.status !== 404) throw error;
    areElsewhere = true;
    return null;
  }
}

/** Of Prometheus' text format: the lines of firelock's own metrics. */
function gaugesIn(text: string): Map<string, number> {
  const gauges = new Map<string, number>();
  for (const [, name = '', value = ''] of text.matchAll(/^(firelock_\w+(?:\{[^}]*\})?) (\S+)$/gm))
    gauges.set(name, Number(value));
  return gauges;
}

/** How many schedules there are, as counted last; null: nobody says. */
export function scheduleTotal(signs: Signs | null): number | null {
  const counts = [...(signs?.gauges ?? [])].filter(([name]) => name.startsWith('firelock_schedules{'));
  return counts.length === 0 ? null : counts.reduce((sum, [, count]) => sum + count, 0);
}
