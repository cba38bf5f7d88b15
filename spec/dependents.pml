/*
 * Runs that depend on others, under READ COMMITTED. spec/README.md explains it.
 *
 * D0 and D1 depend on none; X depends on both; Y depends on D1 and, as a chain, on X, or as a -DPAIR, on D0.
 *
 * `row` and `edge` hold what is committed. What a transaction has written is in its own memory until it commits, and its rows are
 * locked by it. A statement begins in one step, in which it takes its snapshot, and goes on in a later one, when it has the locks:
 * of the rows it locks it then sees what is committed, of all others what its snapshot had. Taking the last locks, writing
 * and committing is one step: nobody sees anything in between. A crash may come between any two steps: what is not committed is
 * gone, with its locks.
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

/* where an instance stands */
#define IDLE      0
#define ALONE     1 /* the single statement has begun, and waits for its row */
#define ENDING    2 /* the end is written, the release comes next */
#define RELEASING 3 /* its statement has begun, and waits for the rows of the dependents */
#define LEFT      4 /* the end is committed, and dependents are still to be released */
#define LATE      5 /* the statement that does so has begun */

/* where somebody who records a run stands */
#define LOCKING 1
#define DONE    2

#if defined(READS_FIRST) || defined(CREATOR_DOES_NOT_LOCK)
#define REMEMBERS_WHAT_IT_READ
#endif

/* Names of the properties, for the message of a failed assertion. Never set. */
hidden byte early, below_zero, released_twice, stuck, never_ends_so;

typedef Row {
  unsigned status : 3;
  bit hasDependents;
  unsigned openDependencies : 2;
  bit failedDependency;
  /* 0: nobody; then the instances, then those who record runs. */
  unsigned lockedBy : 3;
  /* What only an observer knows: a release let it go. */
  bit released;
}
Row row[4];

typedef Edge {
  unsigned is : 2;
  /* What only an observer knows: its dependency has ended since there is this edge, or had then. */
  bit kept;
}
Edge edge[4];

/* Masks of rows and edges. */
typedef Process {
  unsigned at : 3;
  unsigned runs : 4;
  unsigned failed : 4;
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

/* The dependents to be counted on are free. */
#define MAY_LOCK(e, i)    (!BIT(inst[i].seen, e) || FREE(INTO(e)))
#define MAY_LOCK_ALL(i)   (MAY_LOCK(0, i) && MAY_LOCK(1, i) && MAY_LOCK(2, i) && MAY_LOCK(3, i))

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
  inst[i].runs = 0;
  inst[i].failed = 0;
  inst[i].seen = 0;
#ifdef SIBLINGS
  inst[i].lastOf = 0;
#endif
#ifdef COUNTS_FROM_SNAPSHOT
  inst[i].openOfX = 0;
  inst[i].openOfY = 0;
#endif
  unlock(BY_INSTANCE(i))
}

/* Committed. */
inline finish(x, how) {
  row[x].status = how;
  for (k : 0 .. 3) {
    if
    :: edge[k].is != NONE && FROM(k) == x -> edge[k].kept = 1
    :: else
    fi
  }
  k = 0
}

inline endAll(i) {
  for (r : D0 .. Y) {
    if
    :: BIT(inst[i].runs, r) -> finish(r, (BIT(inst[i].failed, r) -> FAILED : SUCCEEDED))
    :: else
    fi
  }
  r = 0
}

/* From now on it may start. */
inline letGo(x) {
  for (k : 0 .. 3) { assert(edge[k].is == NONE || INTO(k) != x || edge[k].kept || early) }
  k = 0;
  row[x].status = PENDING
}

#ifdef SIBLINGS
#define LAST_OF(i, x) BIT(inst[i].lastOf, x)
#else
#define LAST_OF(i, x) (row[x].openDependencies == 0)
#endif

/* So many dependents are released in one transaction: one, or all. */
#ifdef BOUNDED
#define MORE(seen) (seen == 0)
#else
#define MORE(seen) true
#endif

/* releaseDependents begins. */
inline look(i) {
  for (k : 0 .. 3) {
    if
    :: edge[k].is == OPEN && BIT(inst[i].runs, FROM(k)) && MORE(inst[i].seen) -> inst[i].seen = inst[i].seen | (1 << k)
    :: else
    fi
  }
#ifdef SIBLINGS
  inst[i].lastOf = (1 << X) | (1 << Y);
  for (k : 0 .. 3) {
    if
    :: edge[k].is != NONE && !ENDED(FROM(k)) && !BIT(inst[i].runs, FROM(k)) ->
      inst[i].lastOf = inst[i].lastOf & ~(1 << INTO(k))
    :: else
    fi
  }
#endif
#ifdef COUNTS_FROM_SNAPSHOT
  inst[i].openOfX = row[X].openDependencies;
  inst[i].openOfY = row[Y].openDependencies;
#endif
  k = 0
}

/* … and has its rows. */
inline release(i) {
  countOf[X] = 0;
  countOf[Y] = 0;
  n = 0;
  for (k : 0 .. 3) {
    if
    :: BIT(inst[i].seen, k) && edge[k].is == OPEN ->
#ifndef NO_EDGE_MARK
      edge[k].is = COUNTED;
#endif
      countOf[INTO(k)] = countOf[INTO(k)] + 1;
      n = n | (BIT(inst[i].failed, FROM(k)) << INTO(k))
    :: else
    fi
  }
  for (r : X .. Y) {
    if
    :: countOf[r] > 0 ->
#ifdef COUNTS_FROM_SNAPSHOT
      row[r].openDependencies = (r == X -> inst[i].openOfX : inst[i].openOfY) - countOf[r];
#else
      assert(row[r].openDependencies >= countOf[r] || below_zero);
      row[r].openDependencies = row[r].openDependencies - countOf[r];
#endif
      if
      :: row[r].status == WAITING && FAILS && BIT(n, r) ->
        row[r].failedDependency = 1;
#ifdef FAILS_FROM_MEMORY
        inst[i].toFail = inst[i].toFail | (1 << r)
#endif
      :: else
      fi;
      if
      :: row[r].status == WAITING && LAST_OF(i, r) && !row[r].failedDependency ->
        assert(!row[r].released || released_twice);
        row[r].released = 1;
        letGo(r)
      :: else
      fi
    :: else
    fi
  }
  r = 0;
  n = 0;
  countOf[X] = 0;
  countOf[Y] = 0
}

/* Committed. Where there were more, they are left. */
inline leave(i) {
#ifdef BOUNDED
  if
  :: inst[i].seen != 0 -> inst[i].at = LEFT; inst[i].seen = 0; unlock(BY_INSTANCE(i))
  :: else -> forget(i)
  fi
#else
  forget(i)
#endif
}

#ifdef LATE_UNLOCKED
#define MAY_LOOK(x, i) true
#else
#define MAY_LOOK(x, i) (!BIT(inst[i].runs, x) || FREE(x))
#endif
inline lockEnded(i) {
#ifndef LATE_UNLOCKED
  for (r : D0 .. X) {
    if
    :: BIT(inst[i].runs, r) && ENDED(r) ->
      row[r].lockedBy = BY_INSTANCE(i);
      inst[i].failed = (inst[i].failed & ~(1 << r)) | ((row[r].status == FAILED) << r)
    :: BIT(inst[i].runs, r) && !ENDED(r) ->
      inst[i].runs = inst[i].runs & ~(1 << r);
      inst[i].failed = inst[i].failed & ~(1 << r)
    :: else
    fi
  }
#endif
  r = 0
}

/* The end is written in a transaction. What nobody depends on ends with that. */
inline begin(i, mask, bad) {
  inst[i].runs = mask;
  inst[i].failed = bad;
#ifdef RELEASE_APART
  endAll(i);
  inst[i].at = LEFT
#else
  for (r : D0 .. Y) {
    if
    :: BIT(inst[i].runs, r) && row[r].hasDependents -> row[r].lockedBy = BY_INSTANCE(i); inst[i].at = ENDING
    :: else
    fi
  }
  r = 0;
  if
  :: inst[i].at != ENDING -> endAll(i); forget(i)
  :: else
  fi
#endif
}

/* settleIfClaimedAndWithoutDependents; the claim is what handoff.pml is about. */
#ifdef ONE_STATEMENT
#define MAY_BEGIN_ALONE(x) (row[x].status == PENDING)
#define MAY_END_ALONE(x)   (row[x].status == PENDING)
#else
#define MAY_BEGIN_ALONE(x) (row[x].status == PENDING && !row[x].hasDependents)
#ifdef NO_GUARD
#define MAY_END_ALONE(x) (row[x].status == PENDING)
#else
#define MAY_END_ALONE(x) (row[x].status == PENDING && !row[x].hasDependents)
#endif
#endif

inline beginAlone(i, x) {
  inst[i].at = ALONE;
  inst[i].runs = 1 << x;
#ifdef ONE_STATEMENT
  look(i)
#endif
}

inline endAlone(i, x, bad) {
  if
  :: MAY_END_ALONE(x) ->
#ifdef ONE_STATEMENT
    inst[i].failed = bad << x;
    inst[i].at = RELEASING;
    row[x].lockedBy = BY_INSTANCE(i)
#else
    finish(x, (bad -> FAILED : SUCCEEDED));
    forget(i)
#endif
  :: else -> forget(i)
  fi
}

/* That it fails stands in its row, so anybody may see to it. */
#ifdef FAILS_FROM_MEMORY
#define KNOWN_TO_FAIL(i, x) BIT(inst[i].toFail, x)
#else
#define KNOWN_TO_FAIL(i, x) true
#endif
#define IS_IDLE(i) (inst[i].at == IDLE)

#ifdef ONE_STATEMENT
#define CAREFULLY(x, bad)
#else
/* settleInTransactionIfClaimed, completeUnderLock, expireIfStillSilent */
#define CAREFULLY(x, bad) \
  :: d_step { IS_IDLE(i) && row[x].status == PENDING && row[x].hasDependents && FREE(x) -> begin(i, 1 << x, bad << x) }
#endif
#define STEPS_OF(x) \
  :: d_step { IS_IDLE(i) && MAY_BEGIN_ALONE(x) -> beginAlone(i, x) } \
  :: d_step { inst[i].at == ALONE && BIT(inst[i].runs, x) && FREE(x) -> endAlone(i, x, 0) } \
  :: d_step { inst[i].at == ALONE && BIT(inst[i].runs, x) && FREE(x) -> endAlone(i, x, 1) } \
  CAREFULLY(x, 0) \
  CAREFULLY(x, 1)
/* failDependents; cancelUnderLock */
#define STEPS_OF_DEPENDENT(x) \
  :: d_step { IS_IDLE(i) && row[x].status == WAITING && row[x].failedDependency && FREE(x) && KNOWN_TO_FAIL(i, x) -> \
      begin(i, 1 << x, 1 << x) } \
  :: d_step { IS_IDLE(i) && row[x].status == WAITING && cancels < CANCELS && FREE(x) -> \
      cancels++; begin(i, 1 << x, 1 << x) }

#define BOTH_READY (row[D0].status == PENDING && row[D1].status == PENDING && row[D0].hasDependents && \
  row[D1].hasDependents && FREE(D0) && FREE(D1))

proctype Instance(byte i) {
end:
  do
  STEPS_OF(D0) STEPS_OF(D1) STEPS_OF(X) STEPS_OF(Y)
  STEPS_OF_DEPENDENT(X) STEPS_OF_DEPENDENT(Y)
#ifndef ONE_STATEMENT
  /* Two ends in one batch. */
  :: d_step { IS_IDLE(i) && BOTH_READY -> begin(i, 3, 0) }
  :: d_step { IS_IDLE(i) && BOTH_READY -> begin(i, 3, 2) }
#endif
  :: d_step { inst[i].at == ENDING -> look(i); inst[i].at = RELEASING }
  :: d_step { inst[i].at == RELEASING && MAY_LOCK_ALL(i) -> endAll(i); release(i); leave(i) }

  /* What an end left, or an overlooked one, is released later: of those that have ended still. */
  :: d_step { inst[i].at == LEFT && MAY_LOOK(D0, i) && MAY_LOOK(D1, i) && MAY_LOOK(X, i) ->
      lockEnded(i); look(i); inst[i].at = LATE }
  :: d_step { inst[i].at == LATE && MAY_LOCK_ALL(i) -> release(i); leave(i) }

#ifdef BACKSTOP
  /* releaseOverlooked */
#define OVERLOOKED(e) (edge[e].is == OPEN && ENDED(FROM(e)))
#define LOOK_AT(e) :: d_step { IS_IDLE(i) && OVERLOOKED(e) -> \
    inst[i].runs = 1 << FROM(e); inst[i].failed = (row[FROM(e)].status == FAILED) << FROM(e); inst[i].at = LEFT }
  LOOK_AT(0) LOOK_AT(1) LOOK_AT(2) LOOK_AT(3)
#endif

  :: d_step { inst[i].at != IDLE && MAY_CRASH -> COUNT_CRASH; forget(i) }
#ifdef FAILS_FROM_MEMORY
  :: d_step { inst[i].toFail != 0 -> inst[i].toFail = 0; forget(i) }
#endif
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

/* The statements before lockDependencies lock nothing that others want, and what they write nobody sees. */
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

/* Its row, its edges, and what has ended counted at once. */
inline insertRun(j, x) {
  for (k : 0 .. 3) {
    if
    :: INTO(k) == x && SEEN_ENDED(j, FROM(k)) ->
      edge[k].is = COUNTED;
      edge[k].kept = ENDED(FROM(k));
      row[x].failedDependency = row[x].failedDependency | (FAILS && SEEN_FAILED(j, FROM(k)))
    :: INTO(k) == x && !SEEN_ENDED(j, FROM(k)) ->
      edge[k].is = OPEN;
      edge[k].kept = ENDED(FROM(k));
      row[x].openDependencies++
    :: else
    fi
  }
  k = 0;
  if
  :: row[x].openDependencies > 0 || row[x].failedDependency -> row[x].status = WAITING
  :: else -> letGo(x)
  fi
}

inline record(j) {
  for (r : D0 .. X) { row[r].hasDependents = row[r].hasDependents | MARKS(j, r) }
  r = 0;
  if
  :: j == 0 -> insertRun(j, X)
  :: else -> insertRun(j, Y)
  fi;
  if
  :: j == 0 && inOneCall ->
    row[X].hasDependents = (THIRD == X);
    insertRun(j, Y)
  :: else
  fi;
  stop(j, DONE)
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

/* retryUnderLock: it waits for what it depends on that has not ended. */
#ifdef RETRY_STARTS
#define HAS_TO_WAIT(x) false
#else
#define HAS_TO_WAIT(x) (row[x].openDependencies > 0)
#endif
inline retry(x) {
  retries++;
  row[x].failedDependency = 0;
  if
  :: HAS_TO_WAIT(x) -> row[x].status = WAITING
  :: else -> letGo(x)
  fi
}
#define RETRY(x) :: d_step { row[x].status == FAILED && FREE(x) && retries < RETRIES -> retry(x) }

/* What the reach lines ask for. */
#define RAN_IN_TURN        (row[Y].released && row[Y].status == SUCCEEDED)
#define FAILED_IN_TURN     (row[X].failedDependency && row[Y].failedDependency && row[Y].status == FAILED && !row[Y].released)
#define RAN_AFTER_A_RETRY  (retries == RETRIES && row[X].released && row[Y].released && row[X].status == SUCCEEDED)

proctype World() {
end:
  do
  RETRY(D0) RETRY(D1) RETRY(X) RETRY(Y)
  /* Nothing can happen any more. */
  :: timeout -> d_step {
      for (r : D0 .. Y) {
        assert((row[r].status != WAITING && row[r].status != PENDING) || stuck);
        assert(row[r].openDependencies == 0 || stuck)
      }
      r = 0 }
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
