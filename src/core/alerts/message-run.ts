import type { Instant } from '../instant.ts';
import { newRun } from '../runs/new-run.ts';
import type { RunRecord } from '../runs/run-record.ts';
import { type Notifier, laneOfMessages } from './notifier.ts';

type GivenMessage = Pick<RunRecord, 'id' | 'status' | 'dueAt' | 'priority'> & Partial<RunRecord>;

/** The run of a message: it is handed to what the notifier's version says, and belongs to no schedule. */
export function messageRun(
  { uid, id, version, destination = '' }: Notifier,
  given: GivenMessage,
  now: Instant,
): RunRecord {
  const ofNotifier = { scheduleUid: uid, scheduleVersion: version, scheduleId: '', notifierId: id };
  const run = {
    ...ofNotifier,
    scheduledFor: now,
    trigger: 'notify',
    lane: laneOfMessages(destination),
  } as const;
  return newRun({ ...run, ...given }, now);
}
