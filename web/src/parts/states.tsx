import type { ComponentChildren } from 'preact';
import type { Polled } from '../state/poll.ts';

/** Nothing is there, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A refusal of the daemon, in its words. */
export function Refusal({ text }: { text: string }) {
  return (
    <p class="refusal" role="alert">
      {text}
    </p>
  );
}

interface LoadedProps<T> {
  from: Polled<T>;
  children: (data: T) => ComponentChildren;
}

/** What was asked of the daemon, once it has answered. */
export function Loaded<T>({ from: { data, problem }, children }: LoadedProps<T>) {
  if (data !== undefined) return <>{children(data)}</>;
  if (problem) return <Refusal text={problem.message} />;
  return <Loading />;
}

export function Loading() {
  return (
    <p class="loading" aria-busy="true">
      Loading…
    </p>
  );
}
