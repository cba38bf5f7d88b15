import { withoutScope } from '../runs/run-lane.ts';
import type { Instant } from '../instant.ts';
import type { SealedText } from '../secrets/key-ring.ts';
import type { Credential } from '../secrets/sealed-values.ts';

/**
 * Where a system is, and how to log in to it. Targets name it; it is read at each attempt. One that can be used has `string` in the
 * place of what is stored: `Connection<string>`.
 */
export interface Connection<C = Credential> {
  /** A connection that is deleted and created again under its id is another one. */
  uid: string;
  id: string;
  description: string | null;
  /** An origin, with or without a path: without a query, templates and credentials. */
  url: string;
  /** Proves that a holder of the key chose the URL: values of targets go there too. Null: no key was configured. */
  urlSeal: SealedText | null;
  headers: Record<string, C>;
  auth: ConnectionAuth<C> | null;
  tls: ConnectionTls<C> | null;
  version: number;
  /** Which writing of that version it is; null: it was written by a firelock that knew no editions. */
  edition: string | null;
  updatedAt: Instant;
  /** Since when its URL has this origin. */
  placedAt: Instant;
}

export type ConnectionAuth<C = Credential> =
  { type: 'bearer'; token: C } | { type: 'basic'; username: string; password: C } | OAuthClient<C>;

/** OAuth 2 client credentials (RFC 6749, 4.4). */
export interface OAuthClient<C = Credential> {
  type: 'oauth2';
  tokenUrl: string;
  clientId: string;
  clientSecret: C;
  scope: string | null;
  audience: string | null;
}

/** PEM texts. `ca` replaces the well-known authorities; `cert` and `key` are there together. */
export interface ConnectionTls<C = Credential> {
  ca: C | null;
  cert: C | null;
  key: C | null;
}

/** What of it may contain credentials, and where they go. */
export type ConnectionFields<C = Credential> = Pick<Connection<C>, 'url' | 'urlSeal' | 'headers' | 'auth' | 'tls'>;

/** The lane of HTTP targets that name it: they share slots, and are found by it. */
export function laneOfConnection(id: string): string {
  return LANE + id;
}

/** Null: the runs of this lane name none. */
export function connectionOfLane(lane: string): string | null {
  return lane.startsWith(LANE) ? withoutScope(lane).slice(LANE.length) : null;
}

const LANE = 'http connection ';
