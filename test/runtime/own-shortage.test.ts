import { describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { type Outcome, notSent, notSentForWant } from '../../src/core/runs/attempts/outcome.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { createOwnShortage, ownShortageOf } from '../../src/runtime/own-shortage.ts';

const failure = (code: string, more: object = {}) => Object.assign(new Error(`connect ${code}`), { code, ...more });

describe('what an instance lacks itself', () => {
  it.each(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM'])('is known by its code: %s', (code) => {
    expect(ownShortageOf(failure(code))).toBe(code);
    expect(ownShortageOf(new Error('connection failed', { cause: failure(code) }))).toBe(code);
  });

  it('is known by its number, where a library has written a code of its own', () => {
    expect(ownShortageOf(failure('ESOCKET', { errno: -24 }))).toBe('EMFILE');
  });

  it('is no fault of a target that refuses, or that this machine has no address to reach by', () => {
    for (const code of ['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'EAI_AGAIN'])
      expect(ownShortageOf(failure(code))).toBe(null);
    expect(ownShortageOf(new AggregateError([failure('EMFILE'), failure('ECONNREFUSED')]))).toBe(null);
    expect(ownShortageOf(new AggregateError([failure('EMFILE'), failure('EMFILE')]))).toBe('EMFILE');
    expect(ownShortageOf('EMFILE')).toBe(null);
  });
});

const ACCEPTED: Outcome = { kind: 'accepted', statusCode: 200, body: '', executionId: null };

function shortage() {
  const events = createEventBus();
  let now = 0;
  const pass = (ms: number) => void (now += ms);
  const own = createOwnShortage(events, { monotonic: () => now });
  const told: string[] = [];
  events.subscribe(({ type }) => {
    if (type === 'resourcesLacked' || type === 'resourcesBack') told.push(type);
  });
  const ended = (result: Outcome) => events.emit({ type: 'attemptEnded', result } as FirelockEvent);
  return { own, pass, ended, told };
}

it('an instance that lacks something claims nothing, then one run, then twice as many with each that is sent', () => {
  const { own, pass, ended, told } = shortage();
  expect(own.mostClaims()).toBe(Infinity);
  for (let attempts = 0; attempts < 100; attempts += 1) ended(notSentForWant('ENOBUFS'));
  // What was begun before says nothing of what can be begun.
  ended(ACCEPTED);
  expect([own.mostClaims(), told]).toEqual([0, ['resourcesLacked']]);
  pass(999);
  expect(own.mostClaims()).toBe(0);
  pass(1);
  expect([own.mostClaims(), told]).toEqual([1, ['resourcesLacked', 'resourcesBack']]);
  ended(ACCEPTED);
  expect(own.mostClaims()).toBe(2);
  // Not sent for another reason: the target refused, which took a connection; or the instance stopped.
  ended(notSent({ kind: 'network', message: 'refused' }));
  ended(notSent({ kind: 'network', message: 'stopped' }, true));
  expect(own.mostClaims()).toBe(4);
  for (let sent = 0; sent < 6; sent += 1) ended(ACCEPTED);
  expect(own.mostClaims()).toBe(Infinity);
});

it('one that meets the same again rests for twice as long, up to half a minute', () => {
  const { own, pass, ended } = shortage();
  for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
    ended(notSentForWant('EADDRNOTAVAIL'));
    pass(seconds * 1000 - 1);
    expect(own.mostClaims()).toBe(0);
    pass(1);
    expect(own.mostClaims()).toBe(1);
  }
});
