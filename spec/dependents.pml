/*
 * Runs that depend on others, under READ COMMITTED. spec/README.md explains it.
 *
 * D0 and D1 depend on none; X depends on both; Y depends on D1 and, as a chain, on X, or as a -DPAIR, on D0.
 *
 * An end writes an effect in its commit where others depend on the run. Any instance takes an effect, finds the open edges of that run,
 * counts them on the rows of the dependents, and deletes the effect, all in one transaction.
 *
 * `row`, `edge` and `effect` hold what is committed. What a transaction has written is in its own memory until it commits, and its rows
 * are locked by it. A statement that has to wait begins in one step, in which it takes its snapshot, and goes on in a later one, when it
 * has the locks: of the rows it locks it then sees what is committed, of all others what its snapshot had. Taking the last locks, writing
 * and committing is one step: no other process sees anything in between. A crash may come between any two steps: what is not committed is gone,
 * with its locks.
 */
#ifndef N
#define N 2 /* instances */
#endif
#ifndef RETRIES
#define RETRIES 1 /* runs that failed and are opened again */
#endif
#ifndef CANCELS
#define CANCELS 1 /* waiting runs that are cancelled */
#endif

#define D0 0
#define D1 1
#define X  2
#define Y  3

/* status */
#define ABSENT    0
#define WAITING   1
#define PENDING   2
#define SUCCEEDED 3
#define FAILED    4

/* edge */
#define NONE    0
#define OPEN    1
#define COUNTED 2

/* effect */
#define WRITTEN 1
#define TAKEN   2

/* where an instance stands */
#define IDLE     0
#define BATCH    1 /* it ends D0 and D1 together, has D0 and waits for D1 */
#define LOOKED   2 /* it has taken an effect and knows the open edges, and waits for the rows of the dependents */
#define READ     3 /* -DMARK_FROM_SNAPSHOT: it has read the run that it is going to end */
#define LEFT     4 /* -DEFFECT_APART: the end is committed, its effect is not */
#define FAILING  5 /* -DFAILS_FROM_MEMORY: what has been counted is committed, what fails by it is not */

/* where a process that records a run stands */
#define LOCKING 1
#define DONE    2

#if defined(READS_FIRST) || defined(CREATOR_DOES_NOT_LOCK)
#define REMEMBERS_WHAT_IT_READ
#endif

/* Names of the properties, for the message of a failed assertion. Never set. */
hidden byte early, below_zero, released_twice, wrong_end, stuck, never_ends_so;

typedef Row {
  unsigned status : 3;
  bit hasDependents;
  unsigned openDependencies : 2;
  /* 0: no process; then the instances, then those that record runs. */
  unsigned lockedBy : 3;
  /* How often it has ended: the ids of effects rise. */
  unsigned ends : 2;
  /* What only an observer knows: its last dependency let it go, or a failed one had it fail. */
  bit released;
  bit failedInTurn;
}
Row row[4];

/* Of the first end of D0, D1 and X, of the second, and so on. */
#define ENDS 3
#define EFFECT(x, nth) effect[(x) * ENDS + (nth)]
typedef Effect {
  unsigned is : 2;
  bit failed;
}
Effect effect[9];

typedef Edge {
  unsigned is : 2;
  /* What only an observer knows: since there is this edge its dependency has succeeded, has failed, or had then. */
  bit succeeded;
  bit failed;
}
Edge edge[4];

/* `seen`, `lastOf` and `toFail` are masks of edges and rows. */
typedef Process {
  unsigned at : 3;
  unsigned endOf : 2;
  unsigned nth : 2;
  bit failed;
  unsigned seen : 4;
#ifdef SIBLINGS
  unsigned lastOf : 4; /* dependents of which no other dependency was open, in the snapshot */
#endif
#ifdef COUNTS_FROM_SNAPSHOT
  unsigned openOfX : 2;
  unsigned openOfY : 2;
#endif
#ifdef FAILS_FROM_MEMORY
  unsigned toFail : 4;
#endif
#ifdef MARK_FROM_SNAPSHOT
  bit mark;
#endif
#ifdef BOUNDED
  bit cut;
#endif
}
Process inst[N];

typedef Request {
  unsigned at : 2;
  unsigned next : 2;
#ifdef MARKS_WHAT_WAS_OPEN
  unsigned toMark : 4;
#endif
#ifdef REMEMBERS_WHAT_IT_READ
  unsigned ended : 4;
  unsigned failed : 4;
#endif
}
Request rec[2];

unsigned retries : 2;
unsigned cancels : 2;
/* As many as there may be, unless it is said. Of two that wait for each other one is rolled back: here only by a crash. */
#ifdef CRASHES
unsigned crashes : 2;
#define MAY_CRASH (crashes < CRASHES)
#define COUNT_CRASH crashes++
#else
#define MAY_CRASH true
#define COUNT_CRASH skip
#endif
/* Y is asked for in one call with X. */
bit inOneCall;

/* Scratch; not part of the state. */
hidden byte k, r, n;
hidden byte countOf[4];
hidden byte wasCounted;

#define BIT(mask, x) (((mask) >> (x)) & 1)
#define ENDED(x)     (row[x].status >= SUCCEEDED)
#define FREE(x)      (row[x].lockedBy == 0)
#define BY_INSTANCE(i) (i + 1)
#define BY_RECORDER(j) (N + 1 + j)

#ifdef PAIR
#define THIRD D0
#else
#define THIRD X
#endif
#define FROM(e) ((e) == 0 -> D0 : ((e) == 2 -> THIRD : D1))
#define INTO(e) ((e) < 2 -> X : Y)

#ifdef ON_FAILURE_RUN
#define FAILS false
#else
#define FAILS true
#endif

inline unlock(who) {
  for (r : D0 .. Y) {
    if
    :: row[r].lockedBy == who -> row[r].lockedBy = 0
    :: else
    fi
  }
  r = 0
}

inline forget(i) {
  inst[i].at = IDLE;
  inst[i].endOf = 0;
  inst[i].nth = 0;
  inst[i].failed = 0;
  inst[i].seen = 0;
#ifdef SIBLINGS
  inst[i].lastOf = 0;
#endif
#ifdef COUNTS_FROM_SNAPSHOT
  inst[i].openOfX = 0;
  inst[i].openOfY = 0;
#endif
#ifdef FAILS_FROM_MEMORY
  inst[i].toFail = 0;
#endif
#ifdef MARK_FROM_SNAPSHOT
  inst[i].mark = 0;
#endif
#ifdef BOUNDED
  inst[i].cut = 0;
#endif
  unlock(BY_INSTANCE(i))
}

/* Committed: the end, and its effect where others depend on the run. */
inline finish(x, bad, hasEffect) {
  row[x].status = (bad -> FAILED : SUCCEEDED);
  for (k : 0 .. 3) {
    if
    :: edge[k].is != NONE && FROM(k) == x ->
      edge[k].succeeded = edge[k].succeeded | !bad;
      edge[k].failed = edge[k].failed | bad
    :: else
    fi
  }
  k = 0;
  if
  :: x < Y && hasEffect && row[x].ends < ENDS -> EFFECT(x, row[x].ends).is = WRITTEN; EFFECT(x, row[x].ends).failed = bad
  :: else
  fi;
  if
  :: x < Y && row[x].ends < ENDS -> row[x].ends++
  :: else
  fi
}

/* From now on it may start. */
inline letGo(x) {
  for (k : 0 .. 3) { assert(edge[k].is == NONE || INTO(k) != x || edge[k].succeeded || edge[k].failed || early) }
  k = 0;
  row[x].status = PENDING
}

#ifdef SIBLINGS
#define LAST_OF(i, x) BIT(inst[i].lastOf, x)
#else
#define LAST_OF(i, x) (row[x].openDependencies == 0)
#endif
#ifdef FAILS_FROM_MEMORY
#define FAIL(i, x) inst[i].toFail = inst[i].toFail | (1 << (x))
#else
#define FAIL(i, x) row[x].failedInTurn = 1; finish(x, 1, row[x].hasDependents)
#endif
#ifdef COUNTS_FROM_SNAPSHOT
#define OPEN_BEFORE(i, x) ((x) == X -> inst[i].openOfX : inst[i].openOfY)
#else
#define OPEN_BEFORE(i, x) row[x].openDependencies
#endif

/* So many of the ends counted on x: of those, `n` has who failed by them. The row is locked. */
inline countOn(i, x) {
  assert(row[x].openDependencies >= countOf[x] || below_zero);
  row[x].openDependencies = OPEN_BEFORE(i, x) - countOf[x];
  if
  :: row[x].status == WAITING && FAILS && BIT(n, x) -> FAIL(i, x)
  :: row[x].status == WAITING && !(FAILS && BIT(n, x)) && LAST_OF(i, x) ->
    assert(!row[x].released || released_twice);
    row[x].released = 1;
    letGo(x)
  :: else
  fi
}

inline countOnBoth(i) {
  for (r : X .. Y) {
    if
    :: countOf[r] > 0 -> countOn(i, r)
    :: else
    fi
  }
  r = 0;
  n = 0;
  countOf[X] = 0;
  countOf[Y] = 0
}

/*
 * openEdges: those of a run that is not open again and has no newer effect. That the effect is locked first changes nothing for others,
 * so both are one step. What it finds locked later it tries again later: here it waits, since it holds nothing that others wait for.
 */
#ifdef COUNTS_WHAT_IS_OPEN
#define IS_OVER(x) true
#else
#define IS_OVER(x) ENDED(x)
#endif
#ifdef OLDER_END_COUNTS
#define HAS_NEWER(x, s) false
#else
#define HAS_NEWER(x, s) ((s) < 2 && EFFECT(x, 2).is != NONE || (s) < 1 && EFFECT(x, 1).is != NONE)
#endif
/* In one transaction so many: one, or all. */
#ifdef BOUNDED
#define MORE(seen) (seen == 0)
#else
#define MORE(seen) true
#endif
inline take(i, x, s) {
  EFFECT(x, s).is = TAKEN;
  inst[i].at = LOOKED;
  inst[i].endOf = x;
  inst[i].nth = s;
  inst[i].failed = EFFECT(x, s).failed;
#ifdef EFFECT_DELETED_FIRST
  EFFECT(x, s).is = NONE;
  EFFECT(x, s).failed = 0;
#endif
  for (k : 0 .. 3) {
    if
    :: edge[k].is == OPEN && FROM(k) == x && IS_OVER(x) && !HAS_NEWER(x, s) ->
      if
      :: MORE(inst[i].seen) -> inst[i].seen = inst[i].seen | (1 << k)
      :: else ->
#ifdef BOUNDED
        inst[i].cut = 1
#else
        skip
#endif
      fi
    :: else
    fi
  }
  k = 0;
#ifdef SIBLINGS
  inst[i].lastOf = (1 << X) | (1 << Y);
  for (k : 0 .. 3) {
    if
    :: edge[k].is != NONE && FROM(k) != x && !ENDED(FROM(k)) -> inst[i].lastOf = inst[i].lastOf & ~(1 << INTO(k))
    :: else
    fi
  }
  k = 0;
#endif
#ifdef COUNTS_FROM_SNAPSHOT
  inst[i].openOfX = row[X].openDependencies;
  inst[i].openOfY = row[Y].openDependencies;
#endif
  skip
}

#define CAN_COUNT(e, i) (BIT(inst[i].seen, e) && FREE(INTO(e)))
#define MAY_COUNT(i) (inst[i].seen == 0 || CAN_COUNT(0, i) || CAN_COUNT(1, i) || CAN_COUNT(2, i) || CAN_COUNT(3, i))

/* The effect is deleted with what it does; where a dependent was locked, or there was more, it stays. */
#if defined(BOUNDED) && !defined(CUT_IS_DONE)
#define IS_CUT(i) inst[i].cut
#else
#define IS_CUT(i) false
#endif
inline putBack(i, done) {
#ifndef EFFECT_DELETED_FIRST
  if
  :: done -> EFFECT(inst[i].endOf, inst[i].nth).is = NONE; EFFECT(inst[i].endOf, inst[i].nth).failed = 0
  :: else -> EFFECT(inst[i].endOf, inst[i].nth).is = WRITTEN
  fi
#else
  skip
#endif
}

/* lockDependents, which passes over those that others have locked; countOn; failDependents; and the commit. */
inline count(i) {
  countOf[X] = 0;
  countOf[Y] = 0;
  n = 0;
  wasCounted = 1;
  for (k : 0 .. 3) {
    if
    :: BIT(inst[i].seen, k) && !FREE(INTO(k)) -> wasCounted = 0
    :: BIT(inst[i].seen, k) && FREE(INTO(k)) && edge[k].is == OPEN ->
      assert((inst[i].failed -> edge[k].failed : edge[k].succeeded) || wrong_end);
#ifndef NO_EDGE_MARK
      edge[k].is = COUNTED;
#endif
      countOf[INTO(k)] = countOf[INTO(k)] + 1;
      n = n | (inst[i].failed << INTO(k))
    :: else
    fi
  }
  k = 0;
  countOnBoth(i);
  putBack(i, wasCounted && !IS_CUT(i));
  wasCounted = 0;
#ifdef FAILS_FROM_MEMORY
  if
  :: inst[i].toFail != 0 -> inst[i].at = FAILING
  :: else -> forget(i)
  fi
#else
  forget(i)
#endif
}

inline crash(i) {
  COUNT_CRASH;
  if
  :: inst[i].at == LOOKED -> putBack(i, false)
  :: else
  fi;
  forget(i)
}

/* settlePlainIfClaimed, settleLockedRuns, completeRun, expiries: the claim is what handoff.pml is about. The row that is deleted says
 * itself whether others depend on it. */
#ifdef MARK_FROM_SNAPSHOT
#define END_OF(x, bad) \
  :: d_step { inst[i].at == IDLE && row[x].status == PENDING -> inst[i].at = READ; inst[i].endOf = x; inst[i].mark = row[x].hasDependents } \
  :: d_step { inst[i].at == READ && inst[i].endOf == x && row[x].status == PENDING && FREE(x) -> \
      finish(x, bad, inst[i].mark); forget(i) } \
  :: d_step { inst[i].at == READ && inst[i].endOf == x && row[x].status != PENDING -> forget(i) }
#else
#ifdef EFFECT_APART
#define END_OF(x, bad) \
  :: d_step { inst[i].at == IDLE && row[x].status == PENDING && FREE(x) -> \
      inst[i].at = (row[x].hasDependents -> LEFT : IDLE); inst[i].endOf = x; inst[i].nth = row[x].ends; inst[i].failed = bad; \
      finish(x, bad, false); if :: inst[i].at == IDLE -> forget(i) :: else fi }
#else
#define END_OF(x, bad) \
  :: d_step { inst[i].at == IDLE && row[x].status == PENDING && FREE(x) -> finish(x, bad, row[x].hasDependents) }
#endif
#endif
#define STEPS_OF(x) END_OF(x, 0) END_OF(x, 1)
/* cancelRun */
#define CANCEL(x) \
  :: d_step { inst[i].at == IDLE && row[x].status == WAITING && cancels < CANCELS && FREE(x) -> \
      cancels++; finish(x, 1, row[x].hasDependents) }
#define DO(x, s) :: d_step { inst[i].at == IDLE && EFFECT(x, s).is == WRITTEN -> take(i, x, s) }
#define EFFECTS_OF(x) DO(x, 0) DO(x, 1) DO(x, 2)
#define END_BATCH(bad) \
  :: d_step { inst[i].at == BATCH && FREE(D1) -> row[D0].lockedBy = 0; \
      if :: row[D0].status == PENDING -> finish(D0, 0, row[D0].hasDependents) :: else fi; \
      if :: row[D1].status == PENDING -> finish(D1, bad, row[D1].hasDependents) :: else fi; \
      forget(i) }

proctype Instance(byte i) {
end:
  do
  STEPS_OF(D0) STEPS_OF(D1) STEPS_OF(X) STEPS_OF(Y)
  CANCEL(X) CANCEL(Y)
#if !defined(MARK_FROM_SNAPSHOT) && !defined(EFFECT_APART)
  /* Two ends in one batch: locked in the order of their ids. */
  :: d_step { inst[i].at == IDLE && row[D0].status == PENDING && row[D1].status == PENDING && FREE(D0) ->
      row[D0].lockedBy = BY_INSTANCE(i); inst[i].at = BATCH }
  END_BATCH(0) END_BATCH(1)
#endif
  EFFECTS_OF(D0) EFFECTS_OF(D1) EFFECTS_OF(X)
  :: d_step { inst[i].at == LOOKED && MAY_COUNT(i) -> count(i) }
#ifdef EFFECT_APART
  :: d_step { inst[i].at == LEFT ->
      EFFECT(inst[i].endOf, inst[i].nth).is = WRITTEN; EFFECT(inst[i].endOf, inst[i].nth).failed = inst[i].failed; forget(i) }
#endif
#ifdef FAILS_FROM_MEMORY
#define FAIL_ONE(x) :: d_step { inst[i].at == FAILING && BIT(inst[i].toFail, x) && FREE(x) -> \
    if :: row[x].status == WAITING -> row[x].failedInTurn = 1; finish(x, 1, row[x].hasDependents) :: else fi; \
    inst[i].toFail = inst[i].toFail & ~(1 << (x)); if :: inst[i].toFail == 0 -> forget(i) :: else fi }
  FAIL_ONE(X) FAIL_ONE(Y)
#endif

#ifdef BACKSTOP
  /* effectsForOverlooked: one statement */
#define NO_EFFECT(x) (EFFECT(x, 0).is == NONE && EFFECT(x, 1).is == NONE && EFFECT(x, 2).is == NONE)
#define LOOK_AT(e) :: d_step { inst[i].at == IDLE && edge[e].is == OPEN && ENDED(FROM(e)) && NO_EFFECT(FROM(e)) -> \
    EFFECT(FROM(e), row[FROM(e)].ends - 1).is = WRITTEN; \
    EFFECT(FROM(e), row[FROM(e)].ends - 1).failed = (row[FROM(e)].status == FAILED) }
  LOOK_AT(0) LOOK_AT(1) LOOK_AT(2) LOOK_AT(3)
#endif

  :: d_step { inst[i].at != IDLE && MAY_CRASH -> crash(i) }
  od
}

/* acceptRuns by j: of X (perhaps with Y) or of Y. */
#define NEEDS(j, x) ((x) <= D1 -> ((j) == 0 || (x) == D1 || THIRD == (x)) : ((x) == THIRD && (j) == 1))
#define MAY_RECORD(j) ((j) == 0 || (!inOneCall && row[THIRD].status != ABSENT))

inline stop(j, to) {
  rec[j].at = to;
  rec[j].next = 0;
#ifdef MARKS_WHAT_WAS_OPEN
  rec[j].toMark = 0;
#endif
#ifdef REMEMBERS_WHAT_IT_READ
  rec[j].ended = 0;
  rec[j].failed = 0;
#endif
  unlock(BY_RECORDER(j))
}

/* Where what it needs stands: read under the lock, so it may as well be read at the commit. */
#ifdef REMEMBERS_WHAT_IT_READ
#define SEEN_ENDED(j, x)  BIT(rec[j].ended, x)
#define SEEN_FAILED(j, x) BIT(rec[j].failed, x)
#else
#define SEEN_ENDED(j, x)  ENDED(x)
#define SEEN_FAILED(j, x) (row[x].status == FAILED)
#endif
inline read(j, x) {
#ifdef REMEMBERS_WHAT_IT_READ
  rec[j].ended = rec[j].ended | (ENDED(x) << x);
  rec[j].failed = rec[j].failed | ((row[x].status == FAILED) << x)
#else
  skip
#endif
}

/* Which get has_dependents. */
#ifdef CREATOR_DOES_NOT_MARK
#define MARKS(j, x) false
#else
#ifdef MARKS_WHAT_WAS_OPEN
#define MARKS(j, x) BIT(rec[j].toMark, x)
#else
#define MARKS(j, x) NEEDS(j, x)
#endif
#endif

/* The statements before lockDependencies lock nothing that others want, and no other process sees what they write. */
inline start(j) {
#if defined(READS_FIRST) || defined(MARKS_WHAT_WAS_OPEN)
  for (r : D0 .. X) {
#ifdef MARKS_WHAT_WAS_OPEN
    rec[j].toMark = rec[j].toMark | ((NEEDS(j, r) && !ENDED(r)) << r);
#endif
#ifdef READS_FIRST
    if
    :: NEEDS(j, r) -> read(j, r)
    :: else
    fi
#endif
  }
  r = 0;
#endif
  rec[j].at = LOCKING
}

/* Its row and its edges. */
inline insertRun(x) {
  row[x].status = WAITING;
  for (k : 0 .. 3) {
    if
    :: INTO(k) == x ->
      edge[k].is = OPEN;
      edge[k].succeeded = (row[FROM(k)].status == SUCCEEDED);
      edge[k].failed = (row[FROM(k)].status == FAILED);
      row[x].openDependencies++
    :: else
    fi
  }
  k = 0
}

/* What has ended by then is counted in the same commit. What is recorded by the same call has not. */
inline record(j) {
  for (r : D0 .. X) { row[r].hasDependents = row[r].hasDependents | MARKS(j, r) }
  r = 0;
  n = 0;
  countOf[X] = 0;
  countOf[Y] = 0;
  if
  :: j == 0 -> insertRun(X)
  :: else -> insertRun(Y)
  fi;
  if
  :: j == 0 && inOneCall -> row[X].hasDependents = (THIRD == X); insertRun(Y)
  :: else
  fi;
  for (k : 0 .. 3) {
    if
    :: edge[k].is == OPEN && INTO(k) == X && j == 0 && SEEN_ENDED(j, FROM(k)) ->
      edge[k].is = COUNTED;
      countOf[X] = countOf[X] + 1;
      n = n | (SEEN_FAILED(j, FROM(k)) << X)
    :: edge[k].is == OPEN && INTO(k) == Y && (j == 1 || inOneCall) && !(j == 0 && FROM(k) == X) && SEEN_ENDED(j, FROM(k)) ->
      edge[k].is = COUNTED;
      countOf[Y] = countOf[Y] + 1;
      n = n | (SEEN_FAILED(j, FROM(k)) << Y)
    :: else
    fi
  }
  k = 0;
  countRecorded(X);
  countRecorded(Y);
  n = 0;
  countOf[X] = 0;
  countOf[Y] = 0;
  stop(j, DONE)
}

inline countRecorded(x) {
  if
  :: countOf[x] > 0 ->
    row[x].openDependencies = row[x].openDependencies - countOf[x];
    if
    :: FAILS && BIT(n, x) -> row[x].failedInTurn = 1; finish(x, 1, row[x].hasDependents)
    :: !(FAILS && BIT(n, x)) && row[x].openDependencies == 0 -> row[x].released = 1; letGo(x)
    :: else
    fi
  :: else
  fi
}

#ifdef CREATOR_DOES_NOT_LOCK
/* Only what it marks, as writing does. */
#define MAY_TAKE(x) (row[x].hasDependents || FREE(x))
#define TAKE(j, x)  row[x].lockedBy = (row[x].hasDependents -> row[x].lockedBy : BY_RECORDER(j))
#else
#define MAY_TAKE(x) FREE(x)
#define TAKE(j, x)  row[x].lockedBy = BY_RECORDER(j)
#endif

#ifdef LOCKS_BACKWARDS
#define TURN(j) (X - rec[j].next)
#else
#define TURN(j) rec[j].next
#endif
inline nextRow(j) {
  if
  :: rec[j].next < X -> rec[j].next++
  :: else -> record(j)
  fi
}

proctype Recorder(byte j) {
end:
  do
  :: d_step { rec[j].at == IDLE && MAY_RECORD(j) -> start(j) }
  :: d_step { rec[j].at == IDLE -> rec[j].at = DONE }
  /* lockDependencies: in order. A lock is waited for, and then the row is read as it is. */
  :: d_step { rec[j].at == LOCKING && !NEEDS(j, TURN(j)) -> nextRow(j) }
  :: d_step { rec[j].at == LOCKING && NEEDS(j, TURN(j)) && MAY_TAKE(TURN(j)) ->
      TAKE(j, TURN(j));
#ifndef READS_FIRST
      read(j, TURN(j));
#endif
      nextRow(j) }
  :: d_step { rec[j].at == LOCKING && MAY_CRASH -> COUNT_CRASH; stop(j, IDLE) }
  od
}

/* retryRun: it waits for what it depends on that has not ended. */
#ifdef RETRY_STARTS
#define HAS_TO_WAIT(x) false
#else
#define HAS_TO_WAIT(x) (row[x].openDependencies > 0)
#endif
inline retry(x) {
  retries++;
  if
  :: HAS_TO_WAIT(x) -> row[x].status = WAITING
  :: else -> letGo(x)
  fi
}
#define RETRY(x) :: d_step { row[x].status == FAILED && FREE(x) && retries < RETRIES -> retry(x) }

/* What the reach lines ask for. */
#define RAN_IN_TURN        (row[Y].released && row[Y].status == SUCCEEDED)
#define FAILED_IN_TURN     (row[X].failedInTurn && row[Y].failedInTurn && row[Y].status == FAILED && !row[Y].released)
#define RAN_AFTER_A_RETRY  (retries == RETRIES && row[X].released && row[Y].released && row[X].status == SUCCEEDED)

#ifdef EFFECT_DELETED
/* Another program deletes one. */
bit wasDeleted;
#define DELETE(e) :: d_step { effect[e].is == WRITTEN && !wasDeleted -> wasDeleted = 1; effect[e].is = NONE; effect[e].failed = 0 }
#endif

proctype World() {
end:
  do
  RETRY(D0) RETRY(D1) RETRY(X) RETRY(Y)
#ifdef EFFECT_DELETED
  DELETE(0) DELETE(3) DELETE(6)
#endif
  /* Nothing can happen any more. */
  :: timeout -> d_step {
      for (r : D0 .. Y) {
        assert((row[r].status != WAITING && row[r].status != PENDING) || stuck);
        assert(row[r].openDependencies == 0 || stuck)
      }
      r = 0;
      for (k : 0 .. 8) { assert(effect[k].is == NONE || stuck) }
      k = 0 }
#ifdef NEVER
    assert(!(NEVER) || never_ends_so);
#endif
    break
  od
}

init {
  atomic {
    row[D0].status = PENDING;
    row[D1].status = PENDING;
    if
    :: inOneCall = 0
    :: inOneCall = 1
    fi;
    /* How many are opened again, and cancelled: some, or none. */
    if
    :: skip
    :: retries = RETRIES
    fi;
    if
    :: skip
    :: cancels = CANCELS
    fi;
    for (k : 0 .. N - 1) { run Instance(k) }
    run Recorder(0); run Recorder(1);
    run World();
    k = 0
  }
}
