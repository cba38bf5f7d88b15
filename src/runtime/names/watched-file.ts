import { readFileSync, statSync } from 'node:fs';
import type { Clock } from '../clock.ts';

const LOOK_EVERY_MS = 1_000;

/**
 * A small local file as parsed, read again within a second after a change; one that cannot be read is empty. Read
 * synchronously: the threads for files may all be busy, and look-ups must not wait for them.
 */
export function watchedFile<T>(path: string, parse: (text: string) => T, clock: Clock): () => T {
  let lookedAt = -Infinity;
  let version = 'never read';
  let content = parse('');
  return () => {
    if (clock.monotonic() - lookedAt < LOOK_EVERY_MS) return content;
    lookedAt = clock.monotonic();
    const current = versionOf(path);
    if (current === version) return content;
    version = current;
    content = parse(textOf(path));
    return content;
  };
}

function versionOf(path: string): string {
  try {
    const { mtimeMs, ctimeMs, size, ino } = statSync(path);
    return [mtimeMs, ctimeMs, size, ino].join();
  } catch {
    return 'not there';
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
