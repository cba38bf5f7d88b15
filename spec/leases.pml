/*
 * One run of a pull queue: claim, heartbeat, completion, expiry, taking back. spec/README.md explains it.
 *
 * Time is what is left of leases, by the database's clock: a tick takes one from each. A worker may stop between any two steps
 * and go on later with what it remembers, or die and come back under the same name.
 */
#ifndef LEASE
#define LEASE 2
#endif
#ifndef HEARTBEATS
#define HEARTBEATS 2
#endif
#ifndef LOST
#define LOST 2 /* statements whose answer never comes */
#endif
#ifndef CRASHES
#define CRASHES 1 /* of instances that look for silent runs; workers die as often as they like */
#endif
#ifndef MAX_FAILURES
#define MAX_FAILURES 3
#endif

/* status */
#define PENDING   0
#define RUNNING   1
#define SUCCEEDED 2
#define UNKNOWN   3

/* statement adrift */
#define NONE      0
#define HEARTBEAT 1
#define COMPLETE  2
#define TAKE_BACK 3

/* Names of the properties, for the message of a failed assertion. Never set. */
hidden byte two_leases, stale_word, failures_lost, terminal_changes, stuck, never_ends_so;

/* The run's row. */
unsigned status : 2;
unsigned attempts : 3;
unsigned workerId : 2;
unsigned left : 2;
unsigned failures : 2;

typedef Worker {
  unsigned attempt : 3; /* 0: it works on nothing */
  /* Until when it was told that it has the run. */
  unsigned left : 2;
  /* Which claim it is, as an observer counts them. */
  unsigned claim : 3;
#ifdef CLAIM_UNCHECKED
  bit found;
#endif
}
Worker worker[2];

/* What an instance has found silent, and has still to expire. */
typedef Look {
  unsigned attempt : 3;
  unsigned failures : 2;
}
Look look[2];

/* What only an observer knows. */
unsigned claims : 3;
unsigned expiries : 3;

/* A statement given up by its client, still on its way to the database. */
unsigned adrift : 2;
unsigned adriftBy : 2;
unsigned adriftAttempt : 3;
unsigned adriftClaim : 3;

unsigned heartbeats : 2;
unsigned lost : 2;
unsigned crashes : 2;

#define ME (w + 1)
#define WORKS(w) (worker[w].attempt != 0)

#ifdef NO_ATTEMPT_GUARD
#define SAME_ATTEMPT(n) true
#else
#define SAME_ATTEMPT(n) (attempts == n)
#endif
#ifdef NO_WORKER_GUARD
#define SAME_WORKER(x) true
#else
#define SAME_WORKER(x) (workerId == x)
#endif
/* decideComplete, heartbeatIfCurrent */
#define IS_UNDER_WAY (status == RUNNING || (status == PENDING && attempts > 0))
#ifdef NO_STATUS_GUARD
#define MAY_END true
#else
#define MAY_END (IS_UNDER_WAY || status == UNKNOWN)
#endif

/* expireIfStillSilent */
#ifdef EXPIRES_UNSEEN
#define STILL_SILENT true
#else
#define STILL_SILENT (left == 0)
#endif
#ifdef EXPIRES_ANY_ATTEMPT
#define STILL_IN(n) true
#else
#define STILL_IN(n) (attempts == n)
#endif
#ifdef TAKES_BACK_ANY_ATTEMPT
#define STILL_UNTOLD(n) true
#else
#define STILL_UNTOLD(n) (attempts == n)
#endif

/* claimPullRuns */
inline claimFor(x) {
  status = RUNNING;
  workerId = x;
  left = LEASE;
  claims++;
#ifdef NO_FENCING_TOKEN
  attempts = 1
#else
  attempts++
#endif
}

inline remember(w) {
  worker[w].attempt = attempts;
  worker[w].claim = claims;
  worker[w].left = LEASE;
  assert(worker[1 - w].left == 0 || two_leases)
}

inline forget(w) {
  worker[w].attempt = 0;
  worker[w].claim = 0;
  worker[w].left = 0
}

inline finish(how) {
  assert(status < SUCCEEDED || status == UNKNOWN || terminal_changes);
  status = how;
  left = 0
}

inline complete(x, n, which) {
  if
  :: MAY_END && SAME_ATTEMPT(n) && SAME_WORKER(x) ->
    assert(which == claims || stale_word);
    finish(SUCCEEDED)
  :: else
  fi
}

inline heartbeat(x, n, which) {
  if
  :: IS_UNDER_WAY && SAME_ATTEMPT(n) && SAME_WORKER(x) ->
    assert(which == claims || stale_word);
    left = (status == RUNNING -> LEASE : 0)
  :: else
  fi
}

inline takeBack(n) {
  if
  :: status == RUNNING && STILL_UNTOLD(n) -> status = PENDING; left = 0
  :: else
  fi
}

/* Out of doubt it is tried again, until that has failed too often. */
inline expire(l) {
  if
  :: status == RUNNING && STILL_IN(look[l].attempt) && STILL_SILENT ->
    expiries++;
    failures = look[l].failures + 1;
#ifndef ONLY_LEASES
    assert(failures == expiries || failures_lost);
#endif
    left = 0;
    status = (failures >= MAX_FAILURES -> UNKNOWN : PENDING)
  :: else
  fi;
  overlook(l)
}

inline overlook(l) {
  look[l].attempt = 0;
  look[l].failures = 0
}

inline send(what, w) {
  lost++;
  adrift = what;
  adriftBy = ME;
  adriftAttempt = worker[w].attempt;
  adriftClaim = worker[w].claim
}

inline letGo() {
  adrift = NONE;
  adriftBy = 0;
  adriftAttempt = 0;
  adriftClaim = 0
}

proctype Worker_(byte w) {
end:
  do
#ifdef CLAIM_UNCHECKED
  :: d_step { !WORKS(w) && !worker[w].found && status == PENDING -> worker[w].found = 1 }
  :: d_step { worker[w].found -> worker[w].found = 0; claimFor(ME); remember(w) }
#else
  :: d_step { !WORKS(w) && status == PENDING -> claimFor(ME); remember(w) }
#endif
  /* … it is not told of it, and the instance that claimed for it may take that back later. */
  :: d_step { !WORKS(w) && status == PENDING && lost < LOST && adrift == NONE ->
      lost++; claimFor(ME); adrift = TAKE_BACK; adriftBy = ME; adriftAttempt = attempts; adriftClaim = claims }

  :: d_step { WORKS(w) && heartbeats < HEARTBEATS ->
      heartbeats++;
      heartbeat(ME, worker[w].attempt, worker[w].claim);
      if
      :: status == RUNNING && attempts == worker[w].attempt && workerId == ME ->
        worker[w].left = LEASE;
        assert(worker[1 - w].left == 0 || two_leases)
      :: else
      fi }
  :: d_step { WORKS(w) && lost < LOST && adrift == NONE -> send(HEARTBEAT, w) }

  /* At any time, its lease may have run out long since. */
  :: d_step { WORKS(w) -> complete(ME, worker[w].attempt, worker[w].claim); forget(w) }
  /* … unanswered: it may be said again */
  :: d_step { WORKS(w) && lost < LOST && adrift == NONE -> send(COMPLETE, w) }

  /* It dies, or works on something else. */
  :: d_step { WORKS(w) -> forget(w) }
  od
}

/* On each of two instances. */
proctype Expiry(byte l) {
end:
  do
#ifndef NO_EXPIRY
  :: d_step { look[l].attempt == 0 && status == RUNNING && left == 0 ->
      look[l].attempt = attempts; look[l].failures = failures }
#endif
  :: d_step { look[l].attempt != 0 -> expire(l) }
  :: d_step { look[l].attempt != 0 && crashes < CRASHES -> crashes++; overlook(l) }
  od
}

#define TICK(x) x = (x > 0 -> x - 1 : 0)

proctype World() {
end:
  do
  :: d_step { left > 0 || worker[0].left > 0 || worker[1].left > 0 ->
      TICK(left); TICK(worker[0].left); TICK(worker[1].left) }

  /* The statement that was given up arrives, or never does. */
  :: d_step { adrift == HEARTBEAT -> heartbeat(adriftBy, adriftAttempt, adriftClaim); letGo() }
  :: d_step { adrift == COMPLETE -> complete(adriftBy, adriftAttempt, adriftClaim); letGo() }
  :: d_step { adrift == TAKE_BACK -> takeBack(adriftAttempt); letGo() }
  :: d_step { adrift != NONE -> letGo() }

  /* Nothing can happen any more. */
  :: timeout ->
    assert(status >= SUCCEEDED || stuck);
#ifdef NEVER
    assert(status != NEVER || never_ends_so);
#endif
    break
  od
}

init {
  atomic {
    run Worker_(0); run Worker_(1);
    run Expiry(0); run Expiry(1);
    run World();
  }
}
