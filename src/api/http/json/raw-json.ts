import { randomUUID } from 'node:crypto';

/** JSON text that goes into an answer or a request unchanged: parsing would change the digits of its numbers. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): string {
    spliced.push(this.text);
    return MARK;
  }
}

export function rawJsonOrNull(text: string | null): RawJson | null {
  return text === null ? null : new RawJson(text);
}

/** As JSON.stringify, but inserts each RawJson as it is. */
export function stringify(value: unknown): string {
  spliced = [];
  const parts = JSON.stringify(value).split(`"${MARK}"`);
  const texts = spliced;
  let json = parts[0] ?? '';
  for (let index = 1; index < parts.length; index += 1)
    json += (texts[index - 1] ?? 'null') + (parts[index] ?? '');
  return json;
}

/** Stands where raw text will; it is not known outside of the process. */
const MARK = randomUUID();

/** The texts that the present stringify has met, in order; JSON.stringify is synchronous. */
let spliced: string[] = [];
