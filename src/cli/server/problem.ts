import { CliError, EXIT } from '../exit-codes.ts';

interface Problem {
  title?: string;
  detail?: string;
  errors?: { path: string; message: string }[];
}

/** What the server refused, in words: its own, and what to do where only the caller knows. */
export function refusal(status: number, text: string, env: { hasToken: boolean }): CliError {
  const problem = problemOf(text);
  const detail = problem?.detail ?? problem?.title ?? `the server answered ${status}`;
  const faults = (problem?.errors ?? []).map(
    ({ path, message }) => `  ${path === '' ? 'body' : path}: ${message}`,
  );
  const lines = [`${advice(status, env)}${detail}`, ...faults];
  return new CliError(exitCodeOf(status), lines.join('\n'));
}

function exitCodeOf(status: number): CliError['exitCode'] {
  if (status === 404) return EXIT.notFound;
  if (status === 401 || status === 403) return EXIT.notAllowed;
  return status === 502 || status === 503 || status === 504 ? EXIT.unreachable : EXIT.failed;
}

function advice(status: number, { hasToken }: { hasToken: boolean }): string {
  if (status === 401) {
    return hasToken
      ? 'the server does not accept the token in FIRELOCK_TOKEN: '
      : 'the server asks for a token; put it into FIRELOCK_TOKEN: ';
  }
  return status === 403 ? 'the role of this token is not enough: ' : '';
}

function problemOf(text: string): Problem | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? parsed : null;
  } catch {
    return null;
  }
}
