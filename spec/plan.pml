/*
 * Stages 1 to 4: tick, fire-lock, plan, record intent; with edits and backfills. spec/README.md explains it.
 *
 * One schedule. Time is 1..END: under version 0 it is due at 1, 3 and 4, after the edit at 2 and 4; at END nothing is,
 * only locks grow old. locked_at is a reading of that coarse clock, so different locks may carry the same one.
 */
#include "instances.h"

#ifndef FREEZES
#define FREEZES 1 /* living instances declared dead */
#endif
#ifndef LOST
#define LOST 2 /* statements whose answer never comes */
#endif
#ifndef EDITS
#define EDITS 1
#endif
#ifndef BACKFILLS
#define BACKFILLS 1
#endif

#define LAST 4
#define END  5

#define OCCURS(v, t) (((v) == 0 && ((t) == 1 || (t) == 3 || (t) == 4)) || ((v) == 1 && ((t) == 2 || (t) == 4)))
#define NEXT(v, t)   ((v) == 0 -> ((t) < 1 -> 1 : ((t) < 3 -> 3 : ((t) < 4 -> 4 : END))) : \
                                  ((t) < 2 -> 2 : ((t) < 4 -> 4 : END)))
/* Which fires there have to be: by the version in force when the moment came. */
#define IN_FORCE(t)  ((version == 1 && (t) > editedAt) -> 1 : 0)
#define EXPECTED(t)  OCCURS(IN_FORCE(t), t)

/* Names of the properties, for the message of a failed assertion. Never set. */
hidden byte double_plan, lost_fire, phantom_fire, cursor_back, stuck;

/* Scratch; not part of the state. */
hidden byte v, last;

typedef Planner {
  unsigned id : 4;
  bit gone;
  /* What the round remembers: as whom, when and what it locked, and the cursor it plans from. at = 0: no round. */
  unsigned me : 4;
  unsigned at : 3;
  unsigned from : 3;
  bit version;
#ifdef ADVANCE_FIRST
  bit advanced;
#endif
}
Planner inst[N];

/* The schedule's row. */
unsigned cursor : 3 = 1;
bit version;
unsigned lockedBy : 4;
unsigned lockedAt : 3;
/* The runs: bit t is the run of occurrence t. */
unsigned runs : 6;
/* The database's clock, and when the edit took effect. */
unsigned now : 3 = 1;
unsigned editedAt : 3;

/* A statement given up by its client, still on its way to the database. */
Planner adrift;
unsigned lost : 2;
unsigned freezes : 2;
unsigned backfills : 2;

#ifdef NO_LOCK_GUARD
#define NO_LOCK_OWNER
#define NO_LOCK_TIME
#endif
#ifdef NO_LOCK_OWNER
#define SAME_OWNER(p) true
#else
#define SAME_OWNER(p) (lockedBy == p.me)
#endif
#ifdef NO_LOCK_TIME
#define SAME_TIME(p) true
#else
#define SAME_TIME(p) (lockedAt == p.at)
#endif
#ifdef NO_VERSION_GUARD
#define SAME_VERSION(p) true
#else
#define SAME_VERSION(p) (version == p.version)
#endif
#define GUARD(p) (SAME_OWNER(p) && SAME_TIME(p) && SAME_VERSION(p))

#ifdef LOCK_FOREVER
#define FREE(i) (lockedBy == 0)
#else
#define FREE(i) (lockedBy == 0 || lockedBy == inst[i].id || !LIVES(lockedBy) || lockedAt < now)
#endif
#define DUE (cursor <= LAST && cursor <= now)

inline insert(t) {
  assert(EXPECTED(t) || phantom_fire);
#ifdef NO_UNIQUE
  assert(!BIT(runs, t) || double_plan);
#endif
  runs = runs | (1 << (t));
}

inline insertDue(ofVersion, since, till) {
  v = ofVersion;
  last = till;
  k = since;
  do
  :: k > last -> break
  :: k <= last && OCCURS(v, k) -> insert(k); k++
  :: else -> k++
  od
}

/* No occurrence behind the cursor is without its run, of those that came and those that will. */
inline nothingIsPassed() {
  for (k : 1 .. LAST) {
    assert(k >= cursor || BIT(runs, k) || !OCCURS((k > now -> version : IN_FORCE(k)), k) || lost_fire)
  }
  k = 0
}

inline moveCursor(ofVersion, till) {
  v = ofVersion;
  last = till;
#ifndef CURSOR_MAY_GO_BACK
  assert(NEXT(v, last) >= cursor || cursor_back);
#endif
  cursor = NEXT(v, last);
  lockedBy = 0;
  lockedAt = 0;
}

/* recordIntentsIfLocked: p is what the round remembers; it plans up to the moment of its lock. */
inline record(p) {
  if
  :: GUARD(p) -> insertDue(p.version, p.from, p.at); moveCursor(p.version, p.at); nothingIsPassed()
  :: else /* fenced */
  fi
}

inline forget(p) {
  p.me = 0;
  p.at = 0;
  p.from = 0;
  p.version = 0;
#ifdef ADVANCE_FIRST
  p.advanced = 0;
#endif
}

inline remember(p, i) {
  p.me = inst[i].me;
  p.at = inst[i].at;
  p.from = inst[i].from;
  p.version = inst[i].version;
}

/* No step looks at the life of one that holds no lock: its death is not a step of its own. */
inline die(i) {
  crashes++;
  living = (lockedBy == inst[i].id -> living : living & ~(1 << inst[i].id));
  inst[i].id = 0;
  forget(inst[i])
}

proctype Instance(byte i) {
end:
  do
  /* lockDueSchedules */
  :: d_step { IS_UP(i) && inst[i].at == 0 && DUE && FREE(i) ->
      inst[i].me = inst[i].id; inst[i].at = now; inst[i].from = cursor; inst[i].version = version;
      lockedBy = inst[i].id; lockedAt = now }
  /* … and its answer is lost */
  :: d_step { IS_UP(i) && inst[i].at == 0 && DUE && FREE(i) && lost < LOST ->
      lost++; lockedBy = inst[i].id; lockedAt = now }

#ifdef ADVANCE_FIRST
  :: d_step { inst[i].at != 0 && !inst[i].advanced ->
      if
      :: GUARD(inst[i]) -> moveCursor(inst[i].version, inst[i].at); inst[i].advanced = 1
      :: else -> forget(inst[i])
      fi }
  :: d_step { inst[i].at != 0 && inst[i].advanced ->
      insertDue(inst[i].version, inst[i].from, inst[i].at); forget(inst[i]) }
#else
  :: d_step { inst[i].at != 0 -> record(inst[i]); forget(inst[i]) }
  /* … and its client gives up: it may be done now, later or never */
  :: d_step { inst[i].at != 0 && lost < LOST && adrift.at == 0 ->
      lost++; remember(adrift, i); forget(inst[i]) }
#endif

  /* A heartbeat that finds its identity dead: another one. A round in progress goes on as whom it began. */
  :: d_step { IS_UP(i) && !LIVES(inst[i].id) -> register(i) }

  :: d_step { IS_UP(i) && crashes < CRASHES -> die(i) }
  :: d_step { IS_UP(i) && crashes < CRASHES && MAY_GO(i) ->
      inst[i].gone = 1; die(i) }
  :: d_step { !IS_UP(i) && !inst[i].gone -> register(i) }
  od
}

/* A silent identity is declared dead: one that no process works as, or that of a frozen process. */
#define DECLARE(x) \
  :: d_step { LIVES(x) && !WORKS(x) && SOMEBODY_UP -> living = living & ~(1 << x) } \
  :: d_step { LIVES(x) && WORKS(x) && freezes < FREEZES -> freezes++; living = living & ~(1 << x) }

proctype World() {
#ifdef EDIT_READS_FIRST
  byte readAt = 0, readCursor = 0;
#endif
  byte t;
end:
  do
  :: d_step { now < END -> now++ }

  DECLARE(1) DECLARE(2) DECLARE(3) DECLARE(4) DECLARE(5)

  /* The statement that was given up arrives, or never does. */
  :: d_step { adrift.at != 0 -> record(adrift); forget(adrift) }
  :: d_step { adrift.at != 0 -> forget(adrift) }

#ifdef EDIT_READS_FIRST
  :: d_step { version < EDITS && now <= LAST && readAt == 0 -> readAt = now; readCursor = cursor }
  :: d_step { version < EDITS && now <= LAST && readAt != 0 ->
      editedAt = now; insertDue(0, readCursor, readAt); version = 1;
      cursor = NEXT(1, readAt); lockedBy = 0; lockedAt = 0; readAt = 0; readCursor = 0; nothingIsPassed() }
#else
  /* changeSchedules: under the row lock, what was due is recorded, then the new definition holds from now on. */
  :: d_step { version < EDITS && now <= LAST ->
#ifndef EDIT_DROPS_DUE
      insertDue(0, cursor, now);
#endif
      version = 1; editedAt = now;
#ifdef EDIT_LOOKS_BACK
      cursor = NEXT(1, 1);
#else
      cursor = NEXT(1, now);
#endif
#ifndef EDIT_KEEPS_LOCK
      lockedBy = 0; lockedAt = 0;
#endif
      nothingIsPassed() }
#endif

  /* A backfill of one past occurrence; it takes no fire-lock. */
  :: d_step { backfills < BACKFILLS && now >= 1 && EXPECTED(1) -> backfills++; insert(1) }
  :: d_step { backfills < BACKFILLS && now >= 3 && EXPECTED(3) -> backfills++; insert(3) }
  :: d_step { backfills < BACKFILLS && now >= 4 && EXPECTED(4) -> backfills++; insert(4) }

  /* Nothing can happen any more. */
  :: timeout -> d_step {
      assert(cursor == END || stuck);
      for (t : 1 .. LAST) { assert(!EXPECTED(t) || BIT(runs, t) || lost_fire) }
      t = 0 }
      break
  od
}

init {
  atomic {
    for (k : 0 .. N - 1) { register(k) }
    for (k : 0 .. N - 1) { run Instance(k) }
    run World();
  }
}
