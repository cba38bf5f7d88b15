import { type Signal, signal } from '@preact/signals';

/** A choice of this browser's user, kept between visits where the browser allows that. */
export function storedSignal<T extends string>(name: string, values: readonly T[], otherwise: T): Signal<T> {
  const kept = readStored(name);
  const chosen = signal(values.find((value) => value === kept) ?? otherwise);
  chosen.subscribe((value) => {
    writeStored(name, value);
  });
  return chosen;
}

export function readStored(name: string): string | null {
  try {
    return localStorage.getItem(`firelock.${name}`);
  } catch {
    return null;
  }
}

export function writeStored(name: string, value: string): void {
  try {
    localStorage.setItem(`firelock.${name}`, value);
  } catch {
    // Private windows may refuse; the choice then holds until the page is closed.
  }
}
