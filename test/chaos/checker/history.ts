/** What a campaign leaves behind, and all that the checker is given. Times are ms of this machine's clock, which is also the database's. */
export interface History {
  settings: Settings;
  /** When everything was healed for good, and when the last schedule was paused. */
  healedAt: number;
  edits: Edit[];
  /** How many runs of each limit may be under way at once. */
  limits: Record<string, number>;
  /** Fires by hand. */
  fires: Fire[];
  arrivals: Arrival[];
  lookups: Lookup[];
  /** Messages of notifiers, as they arrived. */
  notices: Notice[];
  /** The notifier of the campaign; null: this version has none. */
  notifier: string | null;
  disturbances: Disturbance[];
  /** Null: there were no workers. */
  commands: Commands | null;
  dump: Dump;
  /** How busy the machine was. */
  beats: Beat[];
  /** Of each instance, asked after the last heal. */
  instances: InstanceCheck[];
  /** The body of GET /stats, null where this version has none. */
  stats: Record<string, unknown> | null;
}

interface Settings {
  canaryId: string;
  ttlSeconds: number;
  lockTtlSeconds: number;
  maxRecoveries: number;
  maxRecoveryAgeSeconds: number;
}

type Delivery = 'atLeastOnce' | 'atMostOnce';
type CatchUp = 'skip' | 'latest' | 'all';
export type Overlap = 'allow' | 'skip' | 'queue' | 'replace';

/** command.sh says what each of them does. */
type CommandKind = 'slow' | 'loud' | 'codes' | 'plain';

/** As the load writes it; `marker` is in the payload and names the edit. */
export interface Definition {
  /** Null: `everySeconds`, from the schedule's creation on. */
  cron: string | null;
  everySeconds: number | null;
  jitterSeconds: number;
  catchUp: CatchUp;
  catchUpLimit: number;
  graceSeconds: number;
  overlap: Overlap;
  /** The limit that its runs count against; null: none. */
  limit: string | null;
  /** How long its receiver takes before it answers. */
  holdMs: number;
  enabled: boolean;
  delivery: Delivery;
  lookup: boolean;
  /** Sent through the campaign's connection, as a text of its own, to an endpoint whose 2xx alone is no success. */
  endpoint: boolean;
  /** What the command does that a worker runs; null: it is sent to the receiver. */
  command: CommandKind | null;
  maxAttempts: number;
  timeoutSeconds: number;
}

/** One write through the API. Edits of one schedule follow each other. */
export interface Edit {
  scheduleId: string;
  kind: 'put' | 'delete';
  /** Null for a delete. */
  marker: string | null;
  definition: Definition | null;
  sentAt: number;
  endedAt: number;
  /** `refused`: answered that it was not done, or never connected; `unknown`: anything may have happened. */
  outcome: 'acked' | 'refused' | 'unknown';
}

/** One call that fires a schedule now, under a key of its own. */
export interface Fire {
  scheduleId: string;
  key: string;
  sentAt: number;
  endedAt: number;
  outcome: Edit['outcome'];
}

/** ok and slow: 200 · unavailable: 503 · error: 500 · lost: read, then reset · stalled, dripped: no end within the timeout. */
export type Answer = 'ok' | 'slow' | 'unavailable' | 'error' | 'lost' | 'stalled' | 'dripped';

export interface Arrival {
  at: number;
  /** `1.3`: the third process of instance 1. */
  sender: string;
  runId: string;
  scheduleId: string;
  scheduledFor: number;
  attempt: number;
  marker: string;
  /** What of the request does not fit together; null: nothing. */
  fault: string | null;
  answer: Answer;
  /** When the answer was out, or the connection gone. */
  answeredAt: number;
  /** The whole answer went out to a connection that was still open. */
  delivered: boolean;
}

export interface Lookup {
  at: number;
  sender: string;
  runId: string;
  statusCode: number;
  delivered: boolean;
}

export interface Notice {
  at: number;
  /** The id of its run. */
  messageId: string;
  /** The whole answer went out to a connection that was still open, and took it. */
  delivered: boolean;
}

/** The commands of workers. */
export interface Commands {
  leaseSeconds: number;
  graceSeconds: number;
  calls: WorkerCall[];
  executions: Execution[];
  logs: LogRead[];
  /** What was done to workers. */
  faults: Disturbance[];
}

/** A call of a worker, as a proxy before the instances saw it. */
export interface WorkerCall {
  worker: string;
  action: string;
  /** Null: a claim. */
  runId: string | null;
  attempt: number;
  /** Of an append. */
  offset?: number;
  bytes?: number;
  /** Of a report: `succeeded`, `failed` or `later`. */
  word?: string;
  /** Of a heartbeat that was taken: the run is leased, and no other worker is given it before that lease has run out. */
  isHeld?: boolean;
  /** What a claim was given. */
  given?: { runId: string; attempt: number }[];
  askedAt: number;
  /** Infinity: never, as far as was seen. */
  answeredAt: number;
  status?: number;
  /** When the answer had gone on to a connection that was still open. */
  heardAt?: number;
}

/** A command as it wrote down itself. */
export interface Execution {
  runId: string;
  attempt: number;
  beganAt: number;
  /** Another one of its run still went on. */
  isBeside: boolean;
  marker: string;
  /** Null: it was killed, or the machine was. `bytes`: so many it has printed. */
  ended: { at: number; code: number; bytes: number } | null;
}

/** The log of one attempt, as the API has it in the end. */
export interface LogRead {
  runId: string;
  attempt: number;
  parts: { offset: number; bytes: number }[];
  /** What of it is not what its command printed there; null: nothing. */
  fault: string | null;
}

/** Something was done to an instance (`1`), or to all of them (`*`), that excuses what would be a fault otherwise. */
export interface Disturbance {
  kind: string;
  instance: string;
  from: number;
  to: number;
}

/** For so many ms nothing happened that should have taken no time. */
export interface Beat {
  from: number;
  to: number;
  ms: number;
}

export interface InstanceCheck {
  name: string;
  ready: boolean;
  ticking: boolean;
}

export interface Dump {
  /** The database's clock at the dump. */
  at: number;
  runs: RunRow[];
  /** Runs that follow the ends of these; apart, since no receiver sees them. */
  followers: FollowerRow[];
  /** What was still to follow from ends. */
  effects: EffectRow[];
  /** Episodes. */
  alerts: AlertRow[];
  /** Messages of notifiers; their runs are not among the others, since no schedule has them. */
  messages: MessageRow[];
  attempts: AttemptRow[];
  versions: VersionRow[];
  schedules: ScheduleRow[];
  instances: InstanceRow[];
}

export interface AlertRow {
  id: string;
  scheduleUid: string;
  scheduleId: string;
  kind: string;
  since: number;
  until: number | null;
  runId: string | null;
}

export interface MessageRow {
  runId: string;
  notifierId: string;
  event: 'opened' | 'recovered' | 'reminder' | 'test';
  createdAt: number;
  /** Of its run; null: there is none. */
  status: string | null;
  alertIds: string[];
}

/** The run of an `after` schedule. */
export interface FollowerRow {
  id: string;
  parentRunId: string;
  createdAt: number;
}

interface EffectRow {
  id: number;
  kind: string;
  runId: string;
  failures: number;
  error: string | null;
}

export interface RunRow {
  id: string;
  /** Where its row stands: open ones in `runs`. */
  table: 'runs' | 'history';
  scheduleUid: string;
  scheduleId: string;
  scheduleVersion: number;
  scheduledFor: number;
  trigger: string;
  status: string;
  reason: string | null;
  /** Of a fire by hand. */
  key: string | null;
  attempts: number;
  failures: number;
  recoveries: number;
  coalesced: number;
  coalescedFrom: number | null;
  claimedBy: string | null;
  createdAt: number;
  updatedAt: number;
  handedOffAt: number | null;
  finishedAt: number | null;
  lostAt: number | null;
  recoveredAt: number | null;
  /** When its row entered history; null while it is open. */
  endedAt?: number | null;
}

export interface AttemptRow {
  runId: string;
  attempt: number;
  instanceId: string;
  startedAt: number;
  finishedAt: number;
  outcome: string;
  error?: { kind: string } | null;
}

export interface VersionRow {
  scheduleUid: string;
  scheduleId: string;
  version: number;
  change: string;
  at: number;
  marker: string;
}

interface ScheduleRow {
  uid: string;
  id: string;
  enabled: boolean;
  nextFireAt: number | null;
  lockedBy: string | null;
  lockedAt: number | null;
}

interface InstanceRow {
  id: string;
  startedAt: number;
  heartbeatAt: number;
  diedAt: number | null;
}

/** Between two moments that a checker compares lie some steps of several processes, each of which waits for the processor. */
const STEPS = 20;

/**
 * How much later than in `withinMs` something may have come about at that moment, by what the machine took for nothing around it: next to
 * nothing where it is not busy, and seconds where it is.
 */
export function slackOf({ beats }: History, at: number, withinMs: number): number {
  let slack = 0;
  // What comes later by that may meet a longer one.
  for (let found = -1; found < slack;) {
    found = slack;
    const [from, to] = [at - withinMs, at + withinMs + found];
    for (const beat of beats) {
      if (beat.to >= from && beat.from <= to) slack = Math.max(slack, STEPS * beat.ms);
    }
  }
  return slack;
}

/** 127.1.1.4 is the third process of instance 1; there are more than 250 of them in a long campaign. */
export function sourceAddress(instance: number, process: number): string {
  return `127.${1 + Math.floor(process / 250)}.${instance}.${1 + (process % 250)}`;
}

/** The other way round: `1.3`. */
export function senderOf(address: string): string {
  const [, high = 0, instance = 0, low = 0] = address.split('.').map(Number);
  return `${instance}.${(high - 1) * 250 + low - 1}`;
}
