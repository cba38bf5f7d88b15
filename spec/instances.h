/*
 * What plan.pml and handoff.pml share: instances, their identities, crashes and declarations of death.
 *
 * An identity is a number that is given once (a UUID in the product). `living` is the table `instances`: bit x is set
 * while identity x is registered and not declared dead. `inst[i].id` is the identity under which process i works; it
 * stays the same after others have declared it dead, until the process learns of it. 0: there is no process.
 */
#ifndef N
#define N 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif

#define BIT(mask, x)  (((mask) >> (x)) & 1)
#define LIVES(x)      BIT(living, x)

#if N == 2
#define SOME(p)  (p(0) || p(1))
#define WORKS(x) (inst[0].id == x || inst[1].id == x)
#else
#define SOME(p)  (p(0) || p(1) || p(2))
#define WORKS(x) (inst[0].id == x || inst[1].id == x || inst[2].id == x)
#endif

unsigned living : 8;
unsigned lastId : 3;
unsigned crashes : 3;

#define IS_UP(i)    (inst[i].id != 0)
#define IS_GONE(i)  (inst[i].gone)
#define SOMEBODY_UP SOME(IS_UP)

/* One process has to be left that may come back: nothing is promised while nobody runs. */
#if N == 2
#define MAY_GO(i) (inst[0].gone + inst[1].gone < N - 1)
#else
#define MAY_GO(i) (inst[0].gone + inst[1].gone + inst[2].gone < N - 1)
#endif

/* Identities given must fit their bits, or the search means nothing. */
hidden byte too_many_identities;

inline register(i) {
  assert(lastId < 7 || too_many_identities);
#ifdef SHARED_IDENTITY
  lastId = 1;
#else
  lastId++;
#endif
  inst[i].id = lastId;
  living = living | (1 << lastId);
}

/* Scratch; not part of the state. */
hidden byte k;
