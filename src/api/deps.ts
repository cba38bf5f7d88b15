import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Caller } from '../core/access/roles.ts';
import type { ScopeShares } from '../core/access/scope.ts';
import type { Instant } from '../core/instant.ts';
import type { KnownState } from '../core/installation.ts';
import type { KeyRing } from '../core/secrets/key-ring.ts';
import type { OpenRunCaps } from '../operations/scope-caps.ts';
import type { TookOver } from '../operations/installation-changes.ts';
import type { LogFollowers } from '../queues/log-followers.ts';
import type { PullQueues } from '../queues/pull-queues.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Readiness } from '../runtime/readiness.ts';
import type { Wake } from '../runtime/loop/wake.ts';
import type { Database } from '../postgres/database.ts';
import type { Access } from './access/access.ts';
import type { BrowserRules } from './access/browser-rules.ts';
import type { ConnectionLimits } from './http/plugins/strangers.ts';
import type { TargetRegistry } from '../targets/target.ts';
import type { PackedFile } from './http/packed-file.ts';

/** What the API needs of the daemon around it. At any time, the database may be out of reach, or not migrated yet. */
export interface ApiDeps {
  /** Decides who may call. */
  access: Access;
  /** Refuses, on every path, what a page of another site may have sent. */
  browserRules: BrowserRules;
  connectionLimits: ConnectionLimits;
  answerLimits: AnswerLimits;
  database: Database;
  /** For routes whose pace is `prompt`: other calls do not take all of its connections. */
  promptDatabase: Database;
  /** For routes whose pace is `slow`. */
  slowDatabase: Database;
  clock: Clock;
  targets: TargetRegistry;
  /** Encrypts secret values of targets and connections. */
  secrets: KeyRing;
  /** There is FIRELOCK_SECRETS_DIR: values may be in its files. */
  takesSecretFiles: boolean;
  /** There is FIRELOCK_SMTP_URL: notifiers may send mail. */
  sendsMail: boolean;
  /** FIRELOCK_MAIL_TO_DOMAINS; none: it may go anywhere. */
  mailToDomains: readonly string[];
  events: EventBus;
  /** Ends the sleep of loops that have work. */
  wake: Wake;
  /** The queues at which workers wait for runs. */
  pullQueues: Pick<PullQueues, 'claim' | 'isStopping'>;
  /** Who waits for more of a log. */
  logFollowers: Pick<LogFollowers, 'wait' | 'read' | 'isStopping'>;
  /** FIRELOCK_RUN_LOG_KIB; 0: runs have no logs. */
  runLogKib: number;
  /** What FIRELOCK_SCOPES says, and how many runs callers may still ask for because of it. */
  scopeShares: ScopeShares;
  openRunCaps: OpenRunCaps;
  /** Occurrences older than this leave no records. */
  retentionDays: number;
  /** The prefix of every path, such as `/cron`; empty: none. */
  basePath: string;
  /** What this instance knows of what the installation does. */
  installation: () => KnownState;
  /** It has changed. */
  learnInstallation: () => void;
  /** Takes over from another installation: fires what was due from `since` on. `observesOn`: FIRELOCK_OBSERVE is set here. */
  takeOver: (since: Instant, caller: Caller) => Promise<TookOver & { observesOn: boolean }>;
  readiness: () => Readiness;
  metrics: { contentType: string; text: () => Promise<string> };
  /** `/healthz`, `/readyz` and `/metrics` are on a port of their own: see createSignsServer. */
  hasSignsElsewhere: boolean;
  /** The dashboard's files; null: it was not built. */
  dashboard: Dashboard | null;
  version: string;
  logger: FastifyBaseLogger;
}

/** The server, with route types that come from the zod schemas. */
export type Api = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** Bytes of answers that are written and not yet read. A page of a list has 4 MiB (PAGE_BYTES). */
export interface AnswerLimits {
  /** Of one caller; where callers have no names, of one address. */
  ofCaller: number;
  inAll: number;
}

const MIB = 1024 * 1024;

/** With the limits of every installation. */
export const ANSWER_LIMITS: AnswerLimits = { ofCaller: 32 * MIB, inAll: 128 * MIB };

/** The files that `npm run build` has made of web/. */
export interface Dashboard {
  /** Paths that show the dashboard, as routes: `/schedules/:id`. */
  pages: readonly string[];
  /** The document of all pages. It tells them for which daemon it is written, and is the same in each call. */
  document(daemon: Pick<ApiDeps, 'basePath' | 'hasSignsElsewhere'>): Promise<PackedFile>;
  /** Null: there is no such file. The names contain a hash of the content. */
  asset(name: string): Promise<PackedFile | null>;
}
