import { describe, expect, it } from 'vitest';
import { foundIn } from '../checker/violations.ts';
import { checkGraph } from './graph-checker.ts';
import type { Asked, Delivery, FinalRow, GraphHistory, GraphViolation, Word } from './graph-history.ts';

/** Three in a row: a request, one that is called back for, one that a worker claims; each told of the one before. */
function clean(): GraphHistory {
  return {
    asked: [asked('a', 'http'), asked('b', 'callback', ['a']), asked('c', 'pull', ['b'])],
    rows: [row('a'), row('b'), row('c')],
    deliveries: [
      delivery('a', 100, { answer: { statusCode: 200, at: 110, sent: true } }),
      delivery('b', 200, { answer: { statusCode: 202, at: 210, sent: true }, outcomes: [outcomeOf('a')] }),
      delivery('c', 300, { sender: 'w1', lease: { askedAt: 290, seconds: 2 }, outcomes: [outcomeOf('b')] }),
    ],
    words: [word('b', 250), word('c', 400)],
    sightings: ['a', 'b', 'c'].map((ref) => ({ runId: `id-${ref}`, status: 'succeeded', at: 500 })),
    lives: [{ sender: '1.1', from: 0, to: Infinity, replaced: false }],
    releasedByBackstop: 0,
    uncounted: 0,
    refusals: [],
    unready: [],
  };
}

function asked(ref: string, kind: Asked['kind'], dependsOn: string[] = []): Asked {
  return {
    ref,
    id: `id-${ref}`,
    call: 0,
    outcome: 'accepted',
    kind,
    manner: 'plain',
    fate: 'succeeded',
    dependsOn,
    onDependencyFailure: 'fail',
  };
}

function row(ref: string, given: Partial<FinalRow> = {}): FinalRow {
  return {
    id: `id-${ref}`,
    key: ref,
    status: 'succeeded',
    errorKind: null,
    body: ref,
    attempts: 1,
    endedAt: null,
    ...given,
  };
}

function delivery(ref: string, at: number, given: Partial<Delivery> = {}): Delivery {
  return {
    runId: `id-${ref}`,
    attempt: 1,
    at,
    sender: '1.1',
    outcomes: [],
    answer: null,
    lease: null,
    ...given,
  };
}

function outcomeOf(ref: string, given: object = {}) {
  return { runId: `id-${ref}`, status: 'succeeded', errorKind: null, body: ref, ...given };
}

function word(ref: string, sentAt: number, given: Partial<Word> = {}): Word {
  return {
    runId: `id-${ref}`,
    attempt: 1,
    say: 'succeeded',
    sentAt,
    endedAt: sentAt + 10,
    statusCode: 200,
    isHeld: given.say === 'alive',
    ...given,
  };
}

/** What is found once something has been changed in the clean history. */
function found(change: (history: GraphHistory) => void): GraphViolation[] {
  const history = clean();
  change(history);
  return Object.keys(foundIn(checkGraph(history).violations).examples) as GraphViolation[];
}

const setRow = (history: GraphHistory, ref: string, given: Partial<FinalRow>) => {
  history.rows = history.rows.map((one) => (one.key === ref ? { ...one, ...given } : one));
};
const setAsked = (history: GraphHistory, ref: string, given: Partial<Asked>) => {
  history.asked = history.asked.map((one) => (one.ref === ref ? { ...one, ...given } : one));
};
const setDelivery = (history: GraphHistory, ref: string, given: Partial<Delivery>) => {
  history.deliveries = history.deliveries.map((one) => (one.runId === `id-${ref}` ? { ...one, ...given } : one));
};
const drop = (history: GraphHistory, ref: string) => {
  history.deliveries = history.deliveries.filter(({ runId }) => runId !== `id-${ref}`);
  history.words = history.words.filter(({ runId }) => runId !== `id-${ref}`);
};

/** `b` failed, and `c` needs it: it fails without having been started. */
function inVain(history: GraphHistory): void {
  setAsked(history, 'b', { fate: 'failed' });
  setRow(history, 'b', { status: 'failed', errorKind: 'reported' });
  history.words = [word('b', 250, { say: 'failed' })];
  drop(history, 'c');
  setRow(history, 'c', { status: 'failed', errorKind: 'dependency', body: null });
  history.sightings = [];
}

describe('a campaign', () => {
  it('in which all went well has no violation', () => {
    expect(found(() => undefined)).toEqual([]);
  });

  it('in which a needed run failed has none if no run was started for it', () => {
    expect(found(inVain)).toEqual([]);
  });

  it('with repeats that have their reasons has none', () => {
    const killed = found((history) => {
      history.lives = [{ sender: '1.1', from: 0, to: 115, replaced: false }];
      history.deliveries.push(
        delivery('a', 150, { attempt: 2, sender: '2.1', answer: { statusCode: 200, at: 160, sent: true } }),
      );
    });
    const killedOnTheWay = found((history) => {
      history.lives = [{ sender: '1.1', from: 0, to: 99, replaced: false }];
      const answer = { statusCode: 200, at: 160, sent: true };
      history.deliveries.push(delivery('a', 150, { attempt: 2, sender: '2.1', answer }));
    });
    expect(killedOnTheWay).toEqual([]);
    const busy = found((history) => {
      setDelivery(history, 'a', { at: 50, answer: { statusCode: 503, at: 60, sent: true } });
      history.deliveries.push(delivery('a', 100, { attempt: 2, answer: { statusCode: 200, at: 110, sent: true } }));
    });
    const expired = found((history) => {
      history.words = [word('b', 2_300, { attempt: 2 }), word('c', 2_500)];
      history.sightings = [];
      setDelivery(history, 'c', { at: 2_400, lease: { askedAt: 2_390, seconds: 2 } });
      const again = {
        attempt: 2,
        outcomes: [outcomeOf('a')],
        answer: { statusCode: 202, at: 2_220, sent: true },
      };
      history.deliveries.push(delivery('b', 2_215, again));
    });
    expect([killed, busy, expired]).toEqual([[], [], []]);
  });
});

describe('a run whose call got no answer', () => {
  /** No answer said whether `b` and `c` are there. */
  const unanswered = (history: GraphHistory) => {
    for (const ref of ['b', 'c']) setAsked(history, ref, { id: null, call: 1, outcome: 'unknown' });
  };
  const foundUnanswered = (change: (history: GraphHistory) => void) =>
    found((history) => {
      unanswered(history);
      change(history);
    });
  const absent = (...refs: string[]) => {
    return (history: GraphHistory) => {
      for (const ref of refs) drop(history, ref);
      history.rows = history.rows.filter(({ key }) => !refs.includes(key ?? ''));
      history.sightings = [];
    };
  };

  it('may exist', () => {
    expect(foundUnanswered(() => undefined)).toEqual([]);
  });

  it('may not exist', () => {
    expect(foundUnanswered(absent('b', 'c'))).toEqual([]);
  });

  it('exists completely, or not at all', () => {
    expect(foundUnanswered(absent('c'))).toEqual(['lost']);
  });

  it('exists once for each key', () => {
    expect(foundUnanswered((history) => history.rows.push(row('b', { id: 'id-other' })))).toContain('phantom');
  });

  it('obeys all other rules if it exists', () => {
    const broken: [GraphViolation, (history: GraphHistory) => void][] = [
      ['stuck', (history) => setRow(history, 'c', { status: 'waiting' })],
      ['tooEarly', (history) => setDelivery(history, 'b', { at: 105 })],
      ['wrongOutcome', (history) => setDelivery(history, 'c', { outcomes: [] })],
      ['wrongEnd', (history) => setRow(history, 'c', { status: 'failed', errorKind: 'reported' })],
      ['endedTwice', (history) => history.sightings.unshift({ runId: 'id-c', status: 'failed', at: 400 })],
    ];
    for (const [violation, change] of broken) expect(foundUnanswered(change)).toContain(violation);
  });

  it('is a phantom if no call named it, or its call was answered that it does not exist', () => {
    for (const outcome of ['unasked', 'refused'] as const) {
      expect(found((history) => setAsked(history, 'c', { id: null, outcome }))).toContain('phantom');
    }
  });

  it('does not exist because a delivery arrived', () => {
    const arrived = foundUnanswered((history) => {
      history.rows = history.rows.filter(({ key }) => key === 'a');
      history.sightings = [];
    });
    expect(arrived).toContain('phantom');
  });
});

describe('every kind of broken promise is noticed:', () => {
  it('a run that does not end', () => {
    expect(found((history) => setRow(history, 'c', { status: 'waiting' }))).toContain('stuck');
  });

  it('an accepted run that does not exist', () => {
    expect(found((history) => history.rows.pop())).toContain('lost');
  });

  it('a run, or a delivery, that was not asked for, and two runs for one key', () => {
    expect(found((history) => history.rows.push(row('d')))).toEqual(['phantom']);
    expect(found((history) => history.rows.push(row('a', { id: 'id-other' })))).toEqual(['phantom']);
    expect(found((history) => history.deliveries.push(delivery('d', 500)))).toEqual(['phantom']);
  });

  it('an end that is undone', () => {
    const seen = (status: string) => (history: GraphHistory) =>
      history.sightings.unshift({ runId: 'id-a', status, at: 400 });
    expect(found(seen('failed'))).toEqual(['endedTwice']);
    expect(found(seen('pending'))).toEqual(['endedTwice']);
  });

  it('a start before the end of a dependency, whichever way that ends', () => {
    expect(found((history) => setDelivery(history, 'b', { at: 105 }))).toEqual(['tooEarly']);
    expect(found((history) => setDelivery(history, 'c', { at: 245 }))).toEqual(['tooEarly']);
    const afterFailed = found((history) => {
      inVain(history);
      setAsked(history, 'c', { onDependencyFailure: 'run' });
      setRow(history, 'c', { status: 'succeeded', errorKind: null });
      history.words.push(word('c', 400));
      const outcome = outcomeOf('b', { status: 'failed', errorKind: 'reported' });
      history.deliveries.push(
        delivery('c', 240, { lease: { askedAt: 230, seconds: 2 }, sender: 'w1', outcomes: [outcome] }),
      );
    });
    expect(afterFailed).toEqual(['tooEarly']);
  });

  it('a start before the end of a dependency that had failed because of another', () => {
    const early = found((history) => {
      inVain(history);
      history.asked.push({ ...asked('d', 'http', ['c']), onDependencyFailure: 'run' });
      history.rows.push(row('d'));
      const outcome = outcomeOf('c', { status: 'failed', errorKind: 'dependency', body: null });
      const answer = { statusCode: 200, at: 248, sent: true };
      history.deliveries.push(delivery('d', 245, { outcomes: [outcome], answer }));
    });
    expect(early).toEqual(['tooEarly']);
  });

  it('a start although a needed run failed, and a run that did not fail because of it', () => {
    const started = found((history) => {
      inVain(history);
      history.deliveries.push(
        delivery('c', 300, {
          lease: { askedAt: 290, seconds: 2 },
          outcomes: [outcomeOf('b', { status: 'failed', errorKind: 'reported' })],
        }),
      );
    });
    const skipped = found((history) => {
      inVain(history);
      setRow(history, 'c', { status: 'skipped' });
    });
    expect([started, skipped]).toEqual([['startedInVain'], ['startedInVain']]);
  });

  it('an end that no answer gave, or another one than it gave', () => {
    const unsaid = found((history) => {
      history.words = history.words.filter(({ runId }) => runId !== 'id-c');
    });
    const other = found((history) => {
      setRow(history, 'c', { status: 'failed', errorKind: 'expired' });
      history.sightings = [];
    });
    const forNothing = found((history) => {
      setAsked(history, 'c', { fate: 'failed' });
      setRow(history, 'c', { status: 'failed', errorKind: 'dependency' });
      drop(history, 'c');
      history.sightings = [];
    });
    expect([unsaid, other, forNothing]).toEqual([['wrongEnd'], ['wrongEnd'], ['wrongEnd']]);
  });

  it('a wrong outcome of a dependency in a delivery', () => {
    const foundWith = (list: ReturnType<typeof outcomeOf>[]) =>
      found((history) => setDelivery(history, 'b', { outcomes: list }));
    expect(foundWith([outcomeOf('a', { status: 'failed' })])).toEqual(['wrongOutcome']);
    expect(foundWith([outcomeOf('a', { body: 'x' })])).toEqual(['wrongOutcome']);
    expect(foundWith([outcomeOf('a', { errorKind: 'http' })])).toEqual(['wrongOutcome']);
    expect(foundWith([outcomeOf('c')])).toEqual(['wrongOutcome']);
    expect(foundWith([])).toEqual(['wrongOutcome']);
    expect(foundWith([outcomeOf('a'), outcomeOf('a')])).toEqual(['wrongOutcome']);
  });

  /** Another worker claims `c` at that moment, and ends it. */
  const claimedAgain = (history: GraphHistory, at: number) => {
    history.deliveries.push(
      delivery('c', at, {
        attempt: 2,
        sender: 'w2',
        lease: { askedAt: at - 10, seconds: 2 },
        outcomes: [outcomeOf('b')],
      }),
    );
    history.words = [word('b', 250), word('c', at + 100, { attempt: 2 })];
    history.sightings = [];
  };

  it('two workers at once', () => {
    expect(found((history) => claimedAgain(history, 2_200))).toEqual(['twoWorkers']);
    expect(found((history) => claimedAgain(history, 2_400))).toEqual([]);
    const alive = (history: GraphHistory) => history.words.push(word('c', 1_000, { say: 'alive', endedAt: 1_010 }));
    const extended = found((history) => {
      claimedAgain(history, 2_400);
      alive(history);
    });
    const betweenAttempts = found((history) => {
      claimedAgain(history, 2_400);
      history.words.push(word('c', 2_320, { say: 'alive', endedAt: 2_330, isHeld: false }));
    });
    expect(betweenAttempts).toEqual([]);
    const refused = found((history) => {
      claimedAgain(history, 2_200);
      history.words.push(word('c', 2_295, { say: 'alive', endedAt: 2_305, statusCode: 409 }));
    });
    expect(extended).toEqual(['twoWorkers']);
    expect(refused).toEqual(['twoWorkers']);
  });

  it('a worker that is refused although it has the lease', () => {
    const refused = (endedAt: number) =>
      found((history) => {
        history.words.push(word('c', endedAt - 5, { say: 'alive', endedAt, statusCode: 409 }));
        history.words = history.words.map((one) =>
          one.say === 'alive' || one.runId !== 'id-c' ? one : { ...one, sentAt: 3_000, endedAt: 3_010 },
        );
        history.sightings = [];
      });
    expect(refused(2_200)).toEqual(['leaseBroken']);
    expect(refused(2_400)).toEqual([]);
  });

  it('an accepted report about an attempt that is over', () => {
    const late = found((history) => {
      claimedAgain(history, 2_400);
      history.words = [word('b', 250), word('c', 2_450, { attempt: 1 })];
    });
    const both = found((history) => {
      claimedAgain(history, 2_400);
      history.words.push(word('c', 2_390, { attempt: 1, endedAt: 2_405 }));
    });
    expect(late).toEqual(['staleWord']);
    expect(both).toEqual(['staleWord']);
  });

  it('a start after an end that was acknowledged, or observed', () => {
    const acknowledged = found((history) => {
      claimedAgain(history, 2_400);
      history.words = [word('b', 250), word('c', 400)];
    });
    const seen = found((history) => {
      history.lives = [{ sender: '1.1', from: 0, to: 115, replaced: false }];
      const answer = { statusCode: 200, at: 610, sent: true };
      history.deliveries.push(delivery('a', 600, { attempt: 2, sender: '2.1', answer }));
    });
    expect([acknowledged, seen]).toEqual([['afterItsEnd'], ['afterItsEnd']]);
  });

  it('an attempt that arrives twice', () => {
    const twice = found((history) => {
      setDelivery(history, 'a', { answer: { statusCode: 503, at: 90, sent: true }, at: 80 });
      history.deliveries.push(delivery('a', 100, { answer: { statusCode: 200, at: 110, sent: true } }));
    });
    expect(twice).toEqual(['sameAttemptTwice']);
  });

  it('a repeat without a reason', () => {
    const again = (ref: string, at: number, statusCode: number) =>
      found((history) => {
        const given = { attempt: 2, answer: { statusCode, at: at + 5, sent: true } };
        history.deliveries.push(delivery(ref, at, { ...given, outcomes: ref === 'b' ? [outcomeOf('a')] : [] }));
        history.words = history.words.map((one) =>
          one.runId === 'id-b' ? { ...one, attempt: ref === 'b' ? 2 : 1 } : one,
        );
      });
    expect(again('a', 150, 200)).toEqual(['unexplainedRepeat']);
    expect(again('b', 240, 202)).toEqual(['unexplainedRepeat']);
  });

  it('a run that only recovery released, an end that was not counted, a refused call, and a worker without work', () => {
    expect(found((history) => (history.releasedByBackstop = 1))).toEqual(['backstop']);
    expect(found((history) => (history.uncounted = 2))).toEqual(['uncounted']);
    expect(found((history) => history.refusals.push('500'))).toEqual(['refusal']);
    expect(found((history) => history.unready.push('1'))).toEqual(['liveness']);
  });
});
