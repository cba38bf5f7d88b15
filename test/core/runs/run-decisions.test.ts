import { describe, expect, it } from 'vitest';
import {
  type RunState,
  decideCancel,
  decideComplete,
  decideHeartbeat,
  decideRetry,
} from '../../../src/core/runs/run-decisions.ts';
import { RUN_STATUSES, type RunStatus } from '../../../src/core/runs/run.ts';

const run = (status: RunStatus, rest: Partial<RunState> = {}): RunState => ({
  trigger: 'schedule',
  status,
  reason: null,
  attempts: 3,
  attemptInDoubt: null,
  workerId: null,
  openDependencies: null,
  observed: false,
  ...rest,
});
const ANYBODY = { attempt: null, workerId: null };
const word = (status: 'succeeded' | 'failed', rest: object = {}) => ({
  ...ANYBODY,
  status,
  error: null,
  ...rest,
});

describe('an action on a run', () => {
  it.each<[string, (state: RunState) => { kind: string }, may: string, asItIs: string]>([
    ['cancel', decideCancel, 'waiting pending running', 'cancelled'],
    ['retry', (state) => decideRetry(state, false), 'failed unknown abandoned skipped cancelled', ''],
    ['complete', (state) => decideComplete(state, word('succeeded')), 'pending running unknown', 'succeeded'],
    ['heartbeat', (state) => decideHeartbeat(state, ANYBODY), 'pending running', ''],
  ])('%s is allowed in each status as the contract says', (_, decide, may, asItIs) => {
    const inKind = (kind: string) => RUN_STATUSES.filter((status) => decide(run(status)).kind === kind);
    expect(inKind('write').join(' ')).toBe(may);
    expect(inKind('asItIs').join(' ')).toBe(asItIs);
  });

  it('is refused for a worker before an attempt has started', () => {
    const unstarted = run('pending', { attempts: 0 });
    const refused = { kind: 'notPossible', message: 'the run is pending: no attempt has started' };
    expect(decideComplete(unstarted, word('succeeded'))).toEqual(refused);
    expect(decideHeartbeat(unstarted, ANYBODY)).toEqual(refused);
  });
});

describe('retrying', () => {
  it('lets a run with open dependencies wait again', () => {
    expect(decideRetry(run('failed', { openDependencies: 2 }), false)).toMatchObject({ status: 'waiting' });
    expect(decideRetry(run('failed', { openDependencies: 0 }), false)).toMatchObject({ status: 'pending' });
    expect(decideRetry(run('failed'), false)).toMatchObject({ status: 'pending' });
  });

  it('is not possible once the schedule is gone', () => {
    expect(decideRetry(run('failed'), true)).toMatchObject({
      kind: 'notPossible',
      message: expect.stringContaining('schedule') as string,
    });
  });
});

describe('a report about a run', () => {
  it('is refused if it is about an attempt that is not the current one', () => {
    for (const attempt of [2, 4]) {
      const message = `attempt ${attempt} is not the current one (3)`;
      const stale = { attempt, workerId: null };
      expect(decideHeartbeat(run('running'), stale)).toEqual({ kind: 'notPossible', message });
      for (const status of ['running', 'pending', 'unknown', 'succeeded'] as const)
        expect(decideComplete(run(status), word('succeeded', stale))).toEqual({
          kind: 'notPossible',
          message,
        });
    }
    expect(decideHeartbeat(run('running'), { attempt: 3, workerId: null }).kind).toBe('write');
  });

  it('is refused if it is from a worker that did not claim the run last', () => {
    const theirs = run('running', { workerId: 'theirs' });
    const mine = { attempt: null, workerId: 'mine' };
    expect(decideHeartbeat(theirs, mine)).toMatchObject({
      message: 'the run is not claimed by worker mine',
    });
    expect(decideComplete(theirs, word('failed', mine)).kind).toBe('notPossible');
    expect(decideHeartbeat(run('running'), mine)).toMatchObject({
      message: 'the run is not claimed by worker mine: no worker has claimed it',
    });
    expect(decideHeartbeat(theirs, { attempt: null, workerId: 'theirs' }).kind).toBe('write');
    const unnamed = { kind: 'notPossible', message: 'a worker has claimed the run: workerId must name it' };
    expect(decideHeartbeat(theirs, ANYBODY)).toEqual(unnamed);
    for (const status of ['running', 'pending', 'unknown', 'succeeded'] as const)
      expect(decideComplete(run(status, { workerId: 'theirs' }), word('succeeded'))).toEqual(unnamed);
  });

  it('tells a worker how the run has ended', () => {
    const cancelled = run('cancelled', { reason: 'request' });
    const message = 'the run has ended as cancelled (request)';
    expect(decideHeartbeat(cancelled, ANYBODY)).toEqual({ kind: 'notPossible', message });
    expect(decideComplete(cancelled, word('succeeded'))).toEqual({ kind: 'notPossible', message });
    expect(decideComplete(run('succeeded'), word('failed'))).toEqual({
      kind: 'notPossible',
      message: 'the run has ended as succeeded',
    });
  });

  it('extends a lease only if there is one', () => {
    expect(decideHeartbeat(run('running'), ANYBODY)).toEqual({ kind: 'write' });
    expect(decideHeartbeat(run('pending'), ANYBODY)).toEqual({ kind: 'write' });
  });

  it('becomes the error of a run that is reported as failed', () => {
    expect(decideComplete(run('running'), word('failed', { error: 'no disk' }))).toEqual({
      kind: 'write',
      status: 'failed',
      error: { kind: 'reported', message: 'no disk' },
    });
    expect(decideComplete(run('unknown'), word('failed'))).toMatchObject({
      error: { kind: 'reported', message: 'reported as failed' },
    });
    expect(decideComplete(run('running'), word('succeeded', { error: 'a warning' }))).toMatchObject({
      status: 'succeeded',
      error: null,
    });
  });
});
