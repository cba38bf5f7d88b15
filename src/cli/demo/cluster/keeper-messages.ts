/** What the demo asks its keeper for. */
export type KeeperRequest = { type: 'start'; number: number } | { type: 'kill'; number: number };

/** What the keeper tells the demo. Instances are numbered from 1; one goes on under its number after a restart. */
export type KeeperMessage =
  | { type: 'database'; whatRuns: string }
  | { type: 'failed'; reason: string }
  | { type: 'started'; number: number; pid: number; url: string }
  /** By its log: the id under which it is known to the others, anew after each start. */
  | { type: 'registered'; number: number; instanceId: string }
  /** By the log of one that has noticed. */
  | { type: 'declaredDead'; instanceIds: string[] }
  | { type: 'ended'; number: number; lastLines: string[] };
