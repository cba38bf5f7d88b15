import type { Instant } from '../instant.ts';
import { newRun } from '../runs/new-run.ts';
import type { RunRecord } from '../runs/run-record.ts';
import { type Notifier, laneOfMessages } from './notifier.ts';

type GivenMessage = Pick<RunRecord, 'id' | 'status' | 'dueAt' | 'priority'> & Partial<RunRecord>;

/** The run of a message: it is handed to what the notifier's version says, and belongs to no schedule. */
export function messageRun(notifier: Notifier, given: GivenMessage, now: Instant): RunRecord {
  const { uid, id } = notifier;
  const ofNotifier = { scheduleUid: uid, scheduleId: '', notifierId: id, ...handedTo(notifier) };
  const run = { ...ofNotifier, scheduledFor: now, trigger: 'notify' } as const;
  return newRun({ ...run, ...given }, now);
}

/** Where the run of a message goes, by the notifier's present version. */
export function handedTo({
  version,
  destination = '',
}: Notifier): Pick<RunRecord, 'scheduleVersion' | 'lane'> {
  return { scheduleVersion: version, lane: laneOfMessages(destination) };
}
