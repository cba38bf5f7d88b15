import { expect } from 'vitest';

/**
 * One of the answers has what a page shows of it. Of members that are named in `loose` the kind is enough, as of ids,
 * instants and counts that differ at each reader.
 */
export function expectAnswer(
  place: string,
  shown: unknown,
  answers: readonly unknown[],
  loose: readonly string[],
): void {
  const matches = (answer: unknown) => expect(answer, place).toMatchObject(loosen(shown, loose) as object);
  // Of a list, a page may show one item.
  const candidates = answers.flatMap((answer) => [...((answer as { items?: unknown[] }).items ?? []), answer]);
  expect(candidates.length, `${place} shows an answer; nothing was answered`).toBeGreaterThan(0);
  const fits = candidates.some((answer) => {
    try {
      matches(answer);
      return true;
    } catch {
      return false;
    }
  });
  // For its message.
  if (!fits) matches(candidates.at(-1));
}

function loosen(shown: unknown, loose: readonly string[]): unknown {
  if (Array.isArray(shown)) return shown.map((one) => loosen(one, loose));
  if (typeof shown !== 'object' || shown === null) return shown;
  return Object.fromEntries(
    Object.entries(shown).map(([name, value]) => [
      name,
      loose.includes(name) ? kindOfValue(value) : loosen(value, loose),
    ]),
  );
}

function kindOfValue(value: unknown): unknown {
  if (typeof value === 'string') return expect.any(String);
  if (typeof value === 'number') return expect.any(Number);
  return expect.anything();
}
