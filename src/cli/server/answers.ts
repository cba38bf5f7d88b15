/** What the server answers, as far as a command reads it. Whatever is answered is shown whole as JSON. */
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
  version: number;
  labels: Record<string, string>;
}

export interface RunAnswer {
  id: string;
  scheduleId: string | null;
  scheduledFor: string;
  trigger: string;
  status: string;
  reason: string | null;
  attempts: number;
  failures: number;
  nextAttemptAt: string | null;
  latenessMs: number | null;
  finishedAt: string | null;
  error: { kind: string; message: string; statusCode?: number } | null;
}
