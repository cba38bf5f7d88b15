import { expect, test } from 'vitest';
import { at, changed, run, setRun, violationsOf } from './clean-history.ts';
import type { Commands, Execution, History, WorkerCall } from './history.ts';

const execution = (given: Partial<Execution> = {}): Execution => ({
  ...{ runId: 'run-1', attempt: 1, beganAt: at(1.1), isBeside: false, marker: 'm1' },
  ...{ ended: { at: at(1.5), code: 0, bytes: 100 } },
  ...given,
});
const call = (action: string, seconds: number, given: Partial<WorkerCall> = {}): WorkerCall => ({
  ...{ worker: 'w1', action, runId: 'run-1', attempt: 1, status: 200 },
  ...{ askedAt: at(seconds), answeredAt: at(seconds) + 5, heardAt: at(seconds) + 6 },
  ...given,
});
const claim = (seconds: number, attempt: number, worker = 'w1') =>
  call('claim', seconds, { worker, runId: null, attempt: 0, given: [{ runId: 'run-1', attempt }] });

/** One run, whose command printed 100 bytes and succeeded; then that is changed. */
function commanded(change: (commands: Commands, history: History) => void = () => undefined): string[] {
  const commands: Commands = {
    ...{ leaseSeconds: 5, graceSeconds: 1, faults: [] },
    calls: [claim(1.05, 1), call('log', 1.4, { offset: 0, bytes: 100 }), call('complete', 1.6, { word: 'succeeded' })],
    executions: [execution()],
    logs: [{ runId: 'run-1', attempt: 1, parts: [{ offset: 0, bytes: 100 }], fault: null }],
  };
  const given = (history: History) => {
    history.arrivals = [];
    history.commands = commands;
    history.dump.runs = [run(1), run(2), run(3)];
    for (const second of [2, 3]) {
      const runId = `run-${second}`;
      commands.executions.push(
        execution({ runId, beganAt: at(second + 0.1), ended: { at: at(second + 0.2), code: 0, bytes: 0 } }),
      );
    }
    change(commands, history);
  };
  return violationsOf(changed(given, { command: 'slow' })).filter((violation) => violation !== 'liveness');
}

/** The second attempt begins at 20 s beside the first, whose worker's last sign of life was at 10 s. */
function beside(change: (commands: Commands) => void = () => undefined): string[] {
  return commanded((commands, history) => {
    setRun(history, 1, { attempts: 2, finishedAt: at(21), updatedAt: at(21), endedAt: at(21) });
    commands.executions = [
      execution({ ended: null }),
      execution({ attempt: 2, beganAt: at(20), isBeside: true, ended: { at: at(20.5), code: 0, bytes: 0 } }),
      ...commands.executions.slice(1),
    ];
    commands.calls = [claim(1.05, 1), call('heartbeat', 10, { isHeld: true }), claim(19.9, 2, 'w2')];
    commands.logs = [];
    change(commands);
  });
}

test('commands that did what they should are no violation', () => {
  expect(commanded()).toEqual([]);
});

test('a command beside another one of its run is excused as long as the worker of that one could not know', () => {
  expect(beside()).toEqual([]);
  const killed = { kind: 'killWorker', instance: 'w1', from: at(12), to: at(14) };
  expect(beside(({ faults }) => void faults.push(killed))).toEqual(['commandTwice']);
  const told = call('heartbeat', 15, { status: 409 });
  expect(beside(({ calls }) => void calls.push(told))).toEqual(['commandTwice']);
  const frozen = { kind: 'freezeWorker', instance: 'w1', from: at(11), to: at(30) };
  expect(beside(({ calls, faults }) => [calls.push(told), faults.push(frozen)])).toEqual([]);
});

test('a command that goes on after its worker was killed is a violation', () => {
  const killed = { kind: 'killWorker', instance: 'w1', from: at(1.2), to: at(2) };
  const until = (seconds: number) =>
    commanded(({ executions, faults }) => {
      executions[0] = execution({ ended: { at: at(seconds), code: 0, bytes: 100 } });
      faults.push(killed);
    });
  expect(until(3)).not.toContain('outlived');
  expect(until(6)).toContain('outlived');
});

test('a run that is given to the next worker before its lease has run out is a violation', () => {
  expect(beside(({ calls }) => void calls.push(call('heartbeat', 17, { isHeld: true })))).toEqual(['lease']);
  expect(beside(({ calls }) => void calls.push(call('heartbeat', 17, { isHeld: true }), call('release', 18)))).toEqual(
    [],
  );
});

const BROKEN: [string, string, (commands: Commands, history: History) => void][] = [
  ['commandTwice', 'an attempt that began twice', ({ executions }) => void executions.push(execution())],
  [
    'atMostOnceRepeat',
    'a second command of a run at most once',
    ({ executions }, { edits }) => {
      for (const { definition } of edits) if (definition) definition.delivery = 'atMostOnce';
      executions.push(execution({ attempt: 2, beganAt: at(10) }));
    },
  ],
  ['falseAccept', 'a success without a command', ({ executions, logs }) => [executions.shift(), logs.shift()]],
  [
    'missedAccept',
    'a success that was reported, of a run that has failed',
    (_, history) => setRun(history, 1, { status: 'failed', failures: 3, attempts: 3 }),
  ],
  [
    'wrongEnd',
    'a failure whose command asked for time',
    (commands, history) => {
      commands.calls = [claim(1.05, 1)];
      commands.executions[0] = execution({ ended: { at: at(1.5), code: 75, bytes: 100 } });
      setRun(history, 1, { status: 'failed', failures: 1 });
    },
  ],
  [
    'wrongBody',
    'a command of another version',
    ({ executions }) => Object.assign(executions[0] ?? {}, { marker: 'm2' }),
  ],
  ['early', 'a command before its time', ({ executions }) => Object.assign(executions[0] ?? {}, { beganAt: at(0.9) })],
  ['phantom', 'a command of no run', ({ executions }) => void executions.push(execution({ runId: 'other' }))],
  [
    'stuck',
    'a run that a worker has for ever',
    (commands, history) => {
      commands.calls = [];
      setRun(history, 1, { status: 'running', table: 'runs', finishedAt: null, endedAt: null });
    },
  ],
  ['runLog', 'a log that is not what was printed', ({ logs }) => Object.assign(logs[0] ?? {}, { fault: 'from 0 on' })],
  [
    'runLog',
    'a log without what was acknowledged',
    ({ logs }) => Object.assign(logs[0] ?? {}, { parts: [{ offset: 0, bytes: 60 }] }),
  ],
  [
    'runLog',
    'a short log with a gap',
    ({ logs }) => Object.assign(logs[0] ?? {}, { parts: [{ offset: 40, bytes: 60 }] }),
  ],
  [
    'runLog',
    'a log that lacks its end although the report waited for it',
    (commands) => {
      commands.calls = commands.calls.filter(({ action }) => action !== 'log');
      commands.logs = [{ runId: 'run-1', attempt: 1, parts: [], fault: null }];
    },
  ],
];

test.each(BROKEN)('%s: %s', (violation, _, change) => {
  expect(commanded(change)).toContain(violation);
});

test('of a long log the middle may be left out, and what was never acknowledged; not its beginning', () => {
  const whole = 2_000_000;
  const long = (from: number, to: number, acknowledged: number) =>
    commanded((commands) => {
      commands.executions[0] = execution({ ended: { at: at(1.5), code: 0, bytes: whole } });
      const appends = Array.from({ length: Math.ceil(acknowledged / 65_536) }, (_, n) =>
        call('log', 1.4, { offset: n * 65_536, bytes: 65_536 }),
      );
      commands.calls = [...commands.calls.filter(({ action }) => action !== 'log'), ...appends];
      const parts = [
        { offset: 0, bytes: from },
        { offset: to, bytes: whole - to },
      ];
      commands.logs = [{ runId: 'run-1', attempt: 1, parts, fault: null }];
    });
  expect(long(262_144, 1_213_568, 1_900_000)).toEqual([]);
  expect(long(100_000, 1_213_568, 1_900_000)).toEqual(['runLog']);
  expect(long(100_000, 1_213_568, 65_536)).toEqual([]);
});
