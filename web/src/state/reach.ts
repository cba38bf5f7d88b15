import { signal } from '@preact/signals';

/** What does not answer: the instance itself, or the database behind an instance that does. */
type Away = 'instance' | 'database';

export const away = signal<{ what: Away; since: number } | null>(null);

export function noteAnswer(asksDatabase: boolean): void {
  if (asksDatabase || away.value?.what === 'instance') away.value = null;
}

export function noteAway(what: Away): void {
  if (away.value?.what !== what) away.value = { what, since: away.value?.since ?? Date.now() };
}
