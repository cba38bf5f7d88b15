/** The fields of answers that commands read. As JSON, an answer is shown whole. */
export interface Page<Item> {
  items: Item[];
  nextCursor?: string | null;
}

export interface ScheduleAnswer {
  id: string;
  description: string | null;
  cron?: string | string[] | null;
  everySeconds?: number | null;
  at?: string | null;
  after?: { scheduleId: string; on: string[] } | null;
  timezone: string | null;
  enabled: boolean;
  pauseReason: string | null;
  pauseUntil: string | null;
  status: string;
  late?: boolean;
  error: string | null;
  nextFireAt: string | null;
  lastFireAt: string | null;
  target: unknown;
  payload: unknown;
  overlap: string;
  catchUp: string;
  graceSeconds: number;
  retry: unknown;
  limit: string | null;
  version: number;
  updatedAt: string;
  labels: Record<string, string>;
}

export interface RunAnswer {
  id: string;
  name: string | null;
  scheduleId: string | null;
  scheduledFor: string;
  trigger: string;
  status: string;
  reason: string | null;
  attempts: number;
  failures: number;
  recoveries: number;
  coalesced: number;
  coalescedFrom: string | null;
  nextAttemptAt: string | null;
  handedOffAt: string | null;
  latenessMs: number | null;
  finishedAt: string | null;
  executionId: string | null;
  key: string | null;
  queue: string | null;
  workerId: string | null;
  limit: string | null;
  payload: unknown;
  result: { statusCode: number | null; body: string } | null;
  error: AttemptError | null;
  createdAt: string;
  /** Only for one run, not in lists. */
  target?: unknown;
  attemptLog?: AttemptAnswer[];
}

interface AttemptError {
  kind: string;
  message: string;
  statusCode?: number;
}

export interface AttemptAnswer {
  attempt: number;
  instanceId: string;
  startedAt: string;
  finishedAt: string;
  outcome: string;
  statusCode?: number;
  error?: AttemptError;
  recovery: boolean;
}

export interface OccurrenceAnswer {
  fireAt: string;
  state: string;
  reason?: string;
  runId?: string;
}

export interface FireTimeAnswer {
  fireAt: string;
  local: string;
  note?: string;
  dueAt?: string;
  skipped?: true;
  skipReason?: string;
}

export interface BulkAnswer {
  matched: number;
  changed: number;
  remaining: number;
  sample: string[];
}
