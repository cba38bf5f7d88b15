import { type Parent, isParentRun, lateParent } from '../../../../src/core/runs/parent.ts';
import { type Added, type Sent, type Values, requestOf } from '../../parts/endpoint/sent.ts';
import { type Draft, type Stored, payloadOf } from './draft.ts';

/** What the run at `fireAt` would send. */
export function sentOf(draft: Draft, base: Stored | null, fireAt: number, connection: Added | null = null): Sent {
  const payload = payloadOf(draft, base)?.text.trim() ?? null;
  return requestOf(draft, sampleOf(draft, payload, fireAt), connection);
}

/** A first attempt of the next run. */
function sampleOf(draft: Draft, payload: string | null, scheduledFor: number): Values {
  const scheduleId = draft.id || 'this-schedule';
  const parent = draft.kind === 'after' ? parentOf(draft) : null;
  return {
    runId: '019ac0de-0000-7000-8000-000000000001',
    runName: draft.kind === 'after' ? null : `${scheduleId}@${new Date(scheduledFor).toISOString()}`,
    scheduleId,
    scheduledFor,
    trigger: draft.kind === 'after' ? 'after' : 'schedule',
    attempt: 1,
    payload,
    recovery: null,
    dependencies:
      parent && isParentRun(parent)
        ? [{ runId: parent.runId, status: parent.status, error: parent.error, result: parent.result }]
        : [],
    parent,
  };
}

function parentOf({ afterId, afterOn }: Draft): Parent | null {
  const scheduleId = afterId === '' ? 'another-schedule' : afterId.replace('*', 'another-schedule');
  const status = ENDS.find((end) => afterOn.includes(end));
  if (status === undefined) return afterOn.includes('late') ? lateParent(scheduleId) : null;
  const succeeded = status === 'succeeded';
  return {
    runId: '019ac0de-0000-7000-8000-000000000000',
    scheduleId,
    status,
    reason: null,
    error: succeeded ? null : { kind: 'http', message: 'the target answered 500', statusCode: 500 },
    result: { statusCode: succeeded ? 200 : 500, body: succeeded ? '{"ok":true}' : '{"ok":false}' },
  };
}

const ENDS = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'] as const;
