/*
 * Stages 4 to 7 and recovery, for one recorded run. spec/README.md explains it.
 *
 * -DAT_MOST_ONCE: the other delivery. A process may stop between any two steps and go on later with what it remembers:
 * nothing here ever has to happen until nothing else can.
 */
#include "instances.h"

#ifndef EXPIRIES
#define EXPIRIES 1 /* leases that run out in a process that lives */
#endif
#ifndef LOST
#define LOST 1 /* statements whose answer never comes */
#endif
#ifndef MAX_RECOVERIES
#define MAX_RECOVERIES 2
#endif
#ifndef MAX_ATTEMPTS
#define MAX_ATTEMPTS 2 /* attempts that may fail before the run does */
#endif

#ifdef AT_MOST_ONCE
#define ONCE true
#else
#define ONCE false
#endif

/* status */
#define PENDING   0
#define SUCCEEDED 1
#define FAILED    2
#define UNKNOWN   3
#define ABANDONED 4

/* outcome of an attempt: transient is one that provably did not reach the target */
#define ACCEPTED  1
#define REJECTED  2
#define TRANSIENT 3
#define DOUBTFUL  4

/* where a handoff stands */
#define IDLE    0
#define HELD    1 /* claimed, and the claim is known here */
#define VETTED  2 /* atMostOnce: the lease was seen to be valid; handoff_started_at comes next */
#define READY   3 /* the send comes next */
#define SENDING 4 /* under way to the target */
#define ENDED   5 /* its outcome is not written yet */

/* statement adrift */
#define NONE   0
#define CLAIM  1
#define START  2
#define SETTLE 3

/* Names of the properties, for the message of a failed assertion. Never set. */
hidden byte stale_settle, terminal_changes, not_accepted, accepted_ignored, sent_twice, dead_sender, unexplained_repeat,
  needless_unknown, stuck, never_ends_so;

typedef Process {
  unsigned id : 3;
  bit gone;
  /* Its last answered heartbeat is recent enough, by its own clocks. */
  bit lease;
  unsigned at : 3;
  /* The claim of that handoff: claimed_by and attempts. */
  unsigned by : 3;
  unsigned attempt : 3;
  unsigned outcome : 3;
  /* Which claim it is, as an observer counts them. */
  unsigned claim : 3;
}
Process inst[N];

/* The run's row. */
unsigned status : 3;
unsigned claimedBy : 3;
unsigned attempts : 3;
unsigned failures : 2;
unsigned recoveries : 2;
bit started;

/* What only an observer knows: claims made, requests begun, whether one was accepted, which attempt was marked as started. */
unsigned claims : 3;
unsigned sent : 2;
bit accepted;
unsigned startedAttempt : 3;

/* A statement given up by its client, still on its way to the database. */
unsigned adrift : 2;
unsigned adriftBy : 3;
unsigned adriftAttempt : 3;
unsigned adriftOutcome : 3;
unsigned adriftClaim : 3;

unsigned expiries : 2;
unsigned lost : 2;

/* Scratch; not part of the state. */
hidden byte ofOutcome, ofClaim;

#ifdef NO_CLAIM_GUARD
#define SAME_CLAIMANT(x) true
#else
#define SAME_CLAIMANT(x) (claimedBy == x)
#endif
#ifdef NO_ATTEMPT_GUARD
#define SAME_ATTEMPT(x) true
#else
#define SAME_ATTEMPT(x) (attempts == x)
#endif
#ifdef NO_PENDING_GUARD
#define STILL_PENDING true
#else
#define STILL_PENDING (status == PENDING)
#endif
#ifdef NO_ACCEPTED_EXCEPTION
#define IS_THE_TRUTH(x) false
#else
#define IS_THE_TRUTH(x) (x == ACCEPTED)
#endif
#define CLAIM_HOLDS(by, attempt) (SAME_CLAIMANT(by) && SAME_ATTEMPT(attempt))

/* No clock can be trusted: the lease means nothing, and what it is for is not asked. */
#ifdef NO_CLOCKS
#define NO_LEASE_CHECK
#define NO_LEASE_MARGIN
#endif

#ifdef NO_LEASE_CHECK
#define LEASE_VALID(i) true
#else
#define LEASE_VALID(i) (inst[i].lease)
#endif
#ifdef CHECK_IGNORES_IDENTITY
#define STILL_ME(i) true
#else
#define STILL_ME(i) (inst[i].by == inst[i].id)
#endif

#if defined(AT_MOST_ONCE) && !defined(NO_STARTED_COMMIT)
#define ONCE_VETTED VETTED
#else
#define ONCE_VETTED READY
#endif

/* The claim of an instance that it knows to hold: waiting, under way or not written yet. */
#ifdef EAGER_RECONCILIATION
#define KNOWN(i) false
#else
#define KNOWN(i) (inst[i].at != IDLE && inst[i].by == inst[i].id && inst[i].attempt == attempts)
#endif

/* Others have not heard of x for longer than the TTL. Its own lease ended before that: the margin of 2 s. */
#define FRESH(x, i) (inst[i].id == x && inst[i].lease)
#if N == 2
#define SILENT(x) (!FRESH(x, 0) && !FRESH(x, 1))
#else
#define SILENT(x) (!FRESH(x, 0) && !FRESH(x, 1) && !FRESH(x, 2))
#endif
#define MAY_JUDGE(i) (inst[i].lease)

#define WIRE(i)         (inst[i].at == SENDING && LIVES(inst[i].by))
#define UNDER_WAY_BY_THE_LIVING SOME(WIRE)

inline finish(terminal) {
  status = terminal;
  claimedBy = 0;
  failures = 0;
  recoveries = 0;
  started = 0;
  startedAttempt = 0;
  accepted = 0
}

inline unclaim() {
  claimedBy = 0;
#ifndef STARTED_STAYS
  started = 0;
  startedAttempt = 0
#endif
}

/* A pending run whose claim no living instance holds. */
inline lose() {
  if
#ifndef AT_MOST_ONCE_RESENDS
  :: ONCE && started ->
#ifndef ONLY_SENDS
    assert(startedAttempt == attempts || needless_unknown);
#endif
    finish(UNKNOWN)
  :: !(ONCE && started) && recoveries >= MAX_RECOVERIES -> finish(ABANDONED)
#else
  :: recoveries >= MAX_RECOVERIES -> finish(ABANDONED)
#endif
  :: else -> recoveries++; unclaim()
  fi
}

/* claimPendingRuns */
#define CLAIMABLE (status == PENDING && claimedBy == 0)
inline claimFor(x) {
  claimedBy = x;
  claims++;
#ifndef NO_FENCING_TOKEN
  attempts++
#endif
}

inline remember(i) {
  inst[i].at = HELD;
  inst[i].by = claimedBy;
  inst[i].attempt = attempts;
  inst[i].claim = claims
}

inline forget(i) {
  inst[i].at = IDLE;
  inst[i].by = 0;
  inst[i].attempt = 0;
  inst[i].outcome = 0;
  inst[i].claim = 0
}

#ifdef START_UNGUARDED
#define MAY_START(x, n) true
#else
#define MAY_START(x, n) (status == PENDING && CLAIM_HOLDS(x, n))
#endif
inline markStarted(n) {
  if
  :: status == PENDING -> started = 1; startedAttempt = n
  :: else
  fi
}

/* settleIfClaimedAndWithoutDependents; what that leaves is decided by the same guard, under the row's lock, in settleInTransactionIfClaimed. */
inline settle(byWhom, number, result, which) {
  ofOutcome = result;
  ofClaim = which;
  if
  :: STILL_PENDING && (IS_THE_TRUTH(ofOutcome) || CLAIM_HOLDS(byWhom, number)) ->
    assert(status == PENDING || terminal_changes);
#ifndef ONLY_SENDS
    assert(ofOutcome == ACCEPTED || (claimedBy != 0 && claims == ofClaim) || stale_settle);
#endif
    if
    :: ofOutcome == ACCEPTED -> assert(accepted || not_accepted); finish(SUCCEEDED)
    :: ofOutcome == REJECTED -> finish(FAILED)
#ifndef AT_MOST_ONCE_RETRIES
    :: ONCE && ofOutcome == DOUBTFUL -> finish(UNKNOWN)
#endif
    :: else ->
      failures++;
      if
      :: failures >= MAX_ATTEMPTS -> finish(FAILED)
      :: else -> unclaim()
      fi
    fi
  :: else -> assert(ofOutcome != ACCEPTED || status != PENDING || accepted_ignored)
  fi
}

inline letGo() {
  adrift = NONE;
  adriftBy = 0;
  adriftAttempt = 0;
  adriftOutcome = 0;
  adriftClaim = 0
}

/* What died with the process. No step looks at the life of one that has no claim: it ends without a step. */
inline die(i) {
  crashes++;
  living = ((claimedBy == inst[i].id || (adrift == CLAIM && adriftBy == inst[i].id)) ->
    living : living & ~(1 << inst[i].id));
  inst[i].id = 0;
  inst[i].lease = 0;
  forget(i)
}

proctype Instance(byte i) {
end:
  do
  /* dispatch: claim */
  :: d_step { IS_UP(i) && inst[i].at == IDLE && CLAIMABLE -> claimFor(inst[i].id); remember(i) }
  :: d_step { IS_UP(i) && inst[i].at == IDLE && CLAIMABLE && lost < LOST && adrift == NONE ->
      lost++; adrift = CLAIM; adriftBy = inst[i].id }

  /* dispatch: before a send, is my lease valid, and is the claim one of the identity that the lease is of? */
  :: d_step { inst[i].at == HELD && LEASE_VALID(i) && STILL_ME(i) ->
#ifndef NO_CLOCKS
      assert(LIVES(inst[i].by) || dead_sender);
#endif
      inst[i].at = ONCE_VETTED }
  /* … the claim is of an identity that was declared dead: recovery has it */
  :: d_step { (inst[i].at == HELD || inst[i].at == READY) && inst[i].by != inst[i].id -> forget(i) }

#ifdef AT_MOST_ONCE
  /* dispatch: handoff_started_at */
  :: d_step { inst[i].at == VETTED ->
      if
      :: MAY_START(inst[i].by, inst[i].attempt) -> markStarted(inst[i].attempt); inst[i].at = READY
      :: else -> forget(i) /* fenced */
      fi }
  /* … its commit is unknown: not sent. Asked again, or settled as not sent */
  :: d_step { inst[i].at == VETTED && lost < LOST && adrift == NONE ->
      lost++; adrift = START; adriftBy = inst[i].by; adriftAttempt = inst[i].attempt;
#ifdef UNKNOWN_COMMIT_COUNTS
      inst[i].at = READY
#endif
      }
  :: d_step { inst[i].at == VETTED -> inst[i].at = ENDED; inst[i].outcome = TRANSIENT }
#endif

  /* target. Since the check the process may have been frozen for any time. Or nothing is sent, and that is sure. */
  :: d_step { inst[i].at == READY ->
#ifdef AT_MOST_ONCE
      assert(sent == 0 || sent_twice);
      sent = 1;
#endif
#ifndef NO_CLOCKS
      assert(!LIVES(inst[i].by) || !UNDER_WAY_BY_THE_LIVING || unexplained_repeat);
#endif
      inst[i].at = SENDING }
  :: d_step { inst[i].at == READY -> inst[i].at = ENDED; inst[i].outcome = TRANSIENT }
  :: d_step { inst[i].at == SENDING -> inst[i].at = ENDED; inst[i].outcome = ACCEPTED; accepted = (status == PENDING) }
  :: d_step { inst[i].at == SENDING -> inst[i].at = ENDED; inst[i].outcome = REJECTED }
#ifdef DOUBT_IS_ACCEPTED
  :: d_step { inst[i].at == SENDING -> inst[i].at = ENDED; inst[i].outcome = ACCEPTED }
#else
  :: d_step { inst[i].at == SENDING -> inst[i].at = ENDED; inst[i].outcome = DOUBTFUL }
#endif

  /* settle */
  :: d_step { inst[i].at == ENDED ->
      settle(inst[i].by, inst[i].attempt, inst[i].outcome, inst[i].claim); forget(i) }
  :: d_step { inst[i].at == ENDED && lost < LOST && adrift == NONE ->
      lost++; adrift = SETTLE; adriftBy = inst[i].by; adriftAttempt = inst[i].attempt;
      adriftOutcome = inst[i].outcome; adriftClaim = inst[i].claim }

#ifndef NO_SELF_RECONCILIATION
  /* recovery: a claim of mine that I know nothing of */
  :: d_step { IS_UP(i) && status == PENDING && claimedBy == inst[i].id && !KNOWN(i) -> lose() }
#endif

  /* lease and heartbeat */
  :: d_step { inst[i].lease && expiries < EXPIRIES -> expiries++; inst[i].lease = 0 }
  :: d_step { IS_UP(i) && !inst[i].lease && LIVES(inst[i].id) -> inst[i].lease = 1 }
#ifdef NO_NEW_IDENTITY
  :: d_step { IS_UP(i) && !LIVES(inst[i].id) -> living = living | (1 << inst[i].id); inst[i].lease = 1 }
#else
  :: d_step { IS_UP(i) && !LIVES(inst[i].id) -> register(i); inst[i].lease = 1 }
#endif

  :: d_step { IS_UP(i) && crashes < CRASHES -> die(i) }
  :: d_step { IS_UP(i) && crashes < CRASHES && MAY_GO(i) -> inst[i].gone = 1; die(i) }
  :: d_step { !IS_UP(i) && !inst[i].gone -> register(i); inst[i].lease = 1 }
  od
}

/* recovery: silent identities are declared dead, by an instance whose own lease is valid. */
#ifdef DEATH_AS_EVENT
#define BURY(x) if :: status == PENDING && claimedBy == x -> lose() :: else fi
#else
#define BURY(x) skip
#endif
#ifdef NO_LEASE_MARGIN
#define TOO_EARLY(x) :: d_step { LIVES(x) && expiries < EXPIRIES -> expiries++; living = living & ~(1 << x) }
#else
#define TOO_EARLY(x)
#endif
#define DECLARE(x) \
  :: d_step { LIVES(x) && SILENT(x) && SOME(MAY_JUDGE) -> living = living & ~(1 << x); BURY(x) } TOO_EARLY(x)

proctype World() {
end:
  do
  DECLARE(1) DECLARE(2) DECLARE(3) DECLARE(4) DECLARE(5) DECLARE(6) DECLARE(7)

#ifndef DEATH_AS_EVENT
  /* recovery: orphans, by anti-join */
  :: d_step { status == PENDING && claimedBy != 0 && !LIVES(claimedBy) && SOMEBODY_UP -> lose() }
#endif

  /* The statement that was given up arrives, or never does. */
  :: d_step { adrift == CLAIM ->
      if
      :: CLAIMABLE -> claimFor(adriftBy)
      :: else
      fi;
      letGo() }
  :: d_step { adrift == START ->
      if
      :: MAY_START(adriftBy, adriftAttempt) -> markStarted(adriftAttempt)
      :: else
      fi;
      letGo() }
  :: d_step { adrift == SETTLE -> settle(adriftBy, adriftAttempt, adriftOutcome, adriftClaim); letGo() }
  :: d_step { adrift != NONE -> letGo() }

  /* Nothing can happen any more. */
  :: timeout ->
    assert(status != PENDING || stuck);
#ifdef NEVER
    assert(status != NEVER || never_ends_so);
#endif
    break
  od
}

/* The run as stage 4 records it: for anybody, claimed by the one that records it, or that and its answer lost. */
init {
  atomic {
    for (k : 0 .. N - 1) { register(k); inst[k].lease = 1 }
    if
    :: skip
    :: claimFor(inst[0].id); remember(0)
    :: claimFor(inst[0].id)
    fi;
    for (k : 0 .. N - 1) { run Instance(k) }
    run World();
  }
}
