/** Nothing is sent: the run waits for a worker to claim it. */
export interface PullTarget {
  type: 'pull';
  queue: string;
}

/** Of a schedule that only observes: the API says null. No dispatcher knows the kind. */
export interface NoTarget {
  type: 'none';
}

/** Mail by FIRELOCK_SMTP_URL. Only messages of notifiers are handed to it. */
export interface EmailTarget {
  type: 'email';
  to: string[];
}

/** A body with placeholders, of up to 64 KiB (core/http/body-template.ts). */
export interface BodyTemplate<Secret = string> {
  template: string;
  contentType: string;
  /** By the names under which the template has them; absent: it has none. */
  secrets?: Record<string, Secret> | undefined;
}

/** A status, a class such as `2xx`, or a range such as `400-404`. */
export type StatusPattern = number | string;

/** An answer whose status is in no list is judged as without rules (core/runs/attempts/outcome-rules.ts). */
export interface OutcomeRules {
  succeed: StatusPattern[];
  retry: StatusPattern[];
  fail: StatusPattern[];
  /** What an answer must contain to count as a success; null: nothing. `json`: the text of `equals`, whose numbers keep their digits. */
  require: { pointer: string; json: string } | { contains: string } | null;
  /** What an answer without it means; null: `retry`, and under atMostOnce `fail`. */
  otherwise: 'retry' | 'fail' | null;
}

export const HTTP_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];

/**
 * Where a call goes, for all that must not go elsewhere: the connection, or without one the URL's origin; no id of a
 * connection is an origin. Null: it is no URL.
 */
export function destinationOf(connection: string | null, url: string): string | null {
  return connection ?? originOf(url);
}

/** The origin of a URL that may contain templates, which are allowed in path and query only. Null: it is no URL. */
export function originOf(url: string): string | null {
  return URL.parse(url)?.origin ?? null;
}
