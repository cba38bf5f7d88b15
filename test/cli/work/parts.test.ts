import { describe, expect, it, test } from 'vitest';
import { type Claimed, claimedRuns, execWords, commandOf } from '../../../src/cli/work/job-command.ts';
import { endOf, createPrinted } from '../../../src/cli/work/job-end.ts';
import { resultFault } from '../../../src/core/runs/attempts/outcome-rules.ts';
import { sendLog } from '../../../src/cli/work/lead-run.ts';
import { workOptions } from '../../../src/cli/work/work-command.ts';
import type { Said } from '../../../src/cli/work/work-calls.ts';

const RUN: Claimed = {
  ...{ id: 'r', name: null, scheduleId: null, scheduledFor: 't', attempts: 1, payload: null },
  payloadFrom: 'schedule',
};
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');

test.each([
  [`a 'b c' "d \\" \\$x \\n" e\\ f''g`, ['a', 'b c', 'd " $x \\n', 'e fg']],
  ['  echo $HOME;*|x  ', ['echo', '$HOME;*|x']],
  [`x '' ""`, ['x', '', '']],
  ['', []],
  ["it's", null],
  ['a "b', null],
  ['a\\', null],
])('the words of %s', (command, words) => {
  expect(execWords(command)).toEqual(words);
});

test('payloads are taken from the answer to a claim as they stand in it, whatever stands around them', () => {
  const payload = String.raw`{ "payload" : [1.0, 12345678901234567890], "t": "}\",\u00e9", "n": {"payload": 2} }`;
  const answer = `{"items":[{"id":"a","result":{"payload":1},"payload":${payload},"dependencies":[{"payload":3}]},
    {"id":"b","payload":null},{"id":"c","name":"\\"payload\\":","payload" : 1e400 }]}`;
  const runs = claimedRuns(answer).map(({ id, payload: said }) => [id, said]);
  expect(runs).toEqual([
    ['a', payload],
    ['b', null],
    ['c', '1e400'],
  ]);
  expect(claimedRuns('{"items":[]}')).toEqual([]);
});

describe('what a command has printed', () => {
  it('is given in order, and skips what is more than is kept', () => {
    const printed = createPrinted(8);
    expect(printed.next(4)).toBeNull();
    printed.add(Buffer.from('abcdef'));
    const first = printed.next(4);
    expect([first?.offset, text(first?.bytes ?? Buffer.of())]).toEqual([0, 'abcd']);
    printed.taken(4);
    printed.add(Buffer.from('ghijkl'));
    const second = printed.next(100);
    expect([second?.offset, text(second?.bytes ?? Buffer.of())]).toEqual([4, 'efghijkl']);
    printed.add(Buffer.from('0123456789'));
    const third = printed.next(100);
    expect([third?.offset, text(third?.bytes ?? Buffer.of())]).toEqual([14, '23456789']);
    printed.taken(12);
    expect(printed.next(1)?.offset).toBe(14);
    printed.taken(99);
    expect(printed.next(1)).toBeNull();
    expect(printed.tail()).toBe('23456789');
  });

  it.each([
    ['é'.repeat(3000), 'é'.repeat(2048)],
    [`x${'é'.repeat(3000)}`, 'é'.repeat(2048)],
    [`a${'😀'.repeat(2000)}z`, `${'😀'.repeat(1023)}z`],
    ['no end of line', 'no end of line'],
    ['', ''],
  ])('ends in at most 4 KiB of whole characters', (all, last) => {
    const printed = createPrinted(65_536);
    printed.add(Buffer.from(all));
    expect(printed.tail()).toBe(last);
  });

  it('ends as text even where it is none', () => {
    const printed = createPrinted(65_536);
    printed.add(Buffer.alloc(5000, 0xff));
    expect(printed.tail()).toBe('\ufffd'.repeat(1365));
  });
});

describe('its log', () => {
  /** The server's answers, one after the other, then "taken". */
  function sending(capacity: number, ...answers: Said[]) {
    const printed = createPrinted(capacity);
    const calls: [number, string][] = [];
    const log = sendLog(RUN, printed, {
      append: (_, offset, bytes) => {
        calls.push([offset, text(bytes)]);
        return Promise.resolve(answers.shift() ?? { kind: 'done', body: {} });
      },
    });
    const print = (more: string) => {
      printed.add(Buffer.from(more));
      log.more();
    };
    return { calls, log, print };
  }

  it('is sent in parts, and again from the same offset where no answer came', async () => {
    const { calls, log, print } = sending(262_144, { kind: 'away', reason: 'lost' });
    print('ab');
    log.finish();
    await log.done;
    expect(calls).toEqual([
      [0, 'ab'],
      [0, 'ab'],
    ]);
  });

  it('goes on further ahead where the command prints faster than the server takes it', async () => {
    const { calls, log, print } = sending(4, { kind: 'away', reason: 'slow' });
    print('abcd');
    await expect.poll(() => calls.length).toBe(1);
    print('efghij');
    log.finish();
    await log.done;
    expect(calls).toEqual([
      [0, 'abcd'],
      [6, 'ghij'],
    ]);
  });

  it.each<Said>([{ kind: 'refused', status: 409, detail: 'another attempt' }, { kind: 'unknown' }])(
    'is left alone where the server wants none: %j',
    async (answer) => {
      const { calls, log, print } = sending(262_144, answer);
      print('ab');
      await log.done;
      print('cd');
      log.finish();
      expect(calls).toHaveLength(1);
    },
  );
});

test('a result in the last line is judged, with all its digits, however much was printed before it', () => {
  const printed = createPrinted(262_144);
  const judged = () =>
    resultFault([{ pointer: '/rows', min: 2, max: null, json: '12345678901234567890' }], printed.tail());
  printed.add(Buffer.from('x'.repeat(300_000)));
  expect(judged()).not.toBeNull();
  printed.add(Buffer.from('\n{"rows": 12345678901234567890}\n'));
  expect(judged()).toBeNull();
});

describe('a payload as the command', () => {
  const of = (payload: unknown, more: Partial<Claimed> = {}, any = false) =>
    commandOf({ ...RUN, payload: JSON.stringify(payload), ...more }, { kind: 'payload', any });

  it('is taken from the schedule, and from a call only where that is allowed', () => {
    const command = { kind: 'crontab', command: 'x', stdin: '', user: null, env: {} };
    expect(of({ command: 'x' })).toEqual(command);
    expect(of({ command: 'x' }, { payloadFrom: 'request' })).toMatchObject({ kind: 'refused' });
    expect(of({ command: 'x' }, { payloadFrom: 'request' }, true)).toEqual(command);
  });

  it.each([
    [null, /no command/],
    [{ namespace: 'n', job: {} }, /no command/],
    [{ command: 'a\0b' }, /no command/],
    [{ command: 'x', stdin: 1 }, /stdin/],
    [{ command: 'x', user: '--help' }, /user/],
    [{ command: 'x', user: '0' }, /user/],
    [{ command: 'x', env: { 'A=B': 'c' } }, /env/],
    [{ command: 'x', env: ['a'] }, /env/],
  ])('%j is refused', (payload, why) => {
    expect(of(payload)).toEqual({ kind: 'refused', why: expect.stringMatching(why) as string });
  });
});

test('a command that could not be started for want of room has failed for now, and any other for good', () => {
  const rules = { retryExits: [], timeoutSeconds: null };
  const fault = (code: string) =>
    endOf({ code: null, signal: null, fault: Object.assign(new Error(code), { code }) }, 'none', rules);
  expect(fault('EAGAIN')).toMatchObject({ status: 'failed', retry: true });
  expect(fault('ENOENT')).toEqual({ status: 'failed', error: 'the command could not be started: ENOENT' });
});

test('all faults of the options are named at once', () => {
  const given = { exec: "it's", concurrency: '0', lease: 'x', timeout: '0', grace: '-1', retryExit: ['256'] };
  expect(() => workOptions(['a b', 'q', 'q'], { ...given, name: 'a b' })).toThrow(
    /--name.*a b is not.*twice.*--retry-exit.*a quote is not closed.*--concurrency.*--lease.*--timeout.*--grace/s,
  );
  expect(() => workOptions(['q'], { shell: true })).toThrow('there is no --exec');
  expect(workOptions(['q'], {}).name).not.toBe(workOptions(['q'], {}).name);
});
