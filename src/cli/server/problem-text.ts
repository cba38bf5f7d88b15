import { CliError, EXIT } from '../exit-codes.ts';
import { printable } from '../terminal/shown-text.ts';

interface Problem {
  title?: string;
  detail?: string;
  errors?: { path: string; message: string }[];
}

/** The server's refusal in words, with advice that only the caller can follow. */
export function refusal(status: number, text: string, env: { hasToken: boolean }): CliError {
  const problem = problemOf(text);
  const said = problem?.detail ?? problem?.title ?? `the server answered ${status}`;
  const detail = printable(said.replace(/, see errors$/, ''));
  if (status === 404 && (problem?.detail ?? NO_ROUTE) === NO_ROUTE)
    return new CliError(EXIT.failed, `${detail}; FIRELOCK_URL says where the server is, with its base path`);
  const errors = problem?.errors ?? [];
  // The detail already names a single fault.
  const listed = errors.length === 1 && detail.includes(errors[0]?.message ?? '') ? [] : errors;
  const faults = listed.map(({ path, message }) => printable(`  ${path === '' ? 'body' : path}: ${message}`));
  const lines = [`${advice(status, env)}${detail}`, ...faults];
  return new CliError(exitCodeOf(status), lines.join('\n'));
}

/** The answer of a server that does not have the API at this path, or of an older one that does not know the call. */
const NO_ROUTE = 'there is nothing at this path';

function exitCodeOf(status: number): CliError['exitCode'] {
  if (status === 404) return EXIT.notFound;
  if (status === 401 || status === 403) return EXIT.notAllowed;
  return [429, 502, 503, 504].includes(status) ? EXIT.unreachable : EXIT.failed;
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
