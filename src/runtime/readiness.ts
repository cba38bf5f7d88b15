/** What an instance says of itself at /readyz: `ready` when every check is `ok`; warnings do not change that. */
export interface Readiness {
  status: 'ready' | 'unavailable';
  checks: Record<string, string>;
  warnings: string[];
}

export function readinessOf(checks: Record<string, string>, warnings: string[] = []): Readiness {
  const ready = Object.values(checks).every((check) => check === 'ok');
  return { status: ready ? 'ready' : 'unavailable', checks, warnings };
}
