import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { type JsonBody, isObject, readJsonBody } from '../../../src/api/http/json/json-body.ts';
import { type Random, createRandom } from '../../chaos/random.ts';

test('random bodies, most of them damaged, are read as JSON.parse reads the whole text', () => {
  const random = createRandom(20_261_120, 'bodies');
  const count = { valid: 0, invalid: 0 };
  for (let round = 0; round < 6_000; round += 1) {
    const text = damaged(random, body(random));
    const whole = parsed(text);
    const read = readOrRefused(text);
    if (whole === null || read === null) {
      if (read !== whole) expect([text, read]).toEqual([text, whole]);
      count.invalid += 1;
      continue;
    }
    count.valid += 1;
    const payloads = takePayloads(whole.value);
    const fields = Object.fromEntries(
      [...read.payloads].map(([path, source]) => [path, JSON.parse(source) as unknown]),
    );
    const sources = [...read.payloads.values()];
    if (!isDeepStrictEqual([read.value, fields], [whole.value, payloads])) {
      expect([text, read.value, fields]).toEqual([text, whole.value, payloads]);
    }
    if (!sources.every((source) => text.includes(source))) expect([text, sources]).toEqual([text, 'in it']);
  }
  expect(Math.min(count.valid, count.invalid)).toBeGreaterThan(1_000);
});

const NAMES = ['"payload"', '"items"', '"p\\u0061yload"', '"result"', '"r\\u0065sult"', '"a"', '"b"'];
const SCALARS = ['1.50', 'null', '"q\\"}"', '"é,:\\\\"'];
const DEBRIS = ['{', '}', '[', ']', ':', ',', '"', '\\', ' ', 'é', '1', '{}', '"payload":', '"items":['];

function body(random: Random): string {
  const items = `"items":[${list(random, 1)}]`;
  const again = random.chance(0.5) ? `,"items":${value(random, 1)}` : '';
  return random.chance(0.5) ? value(random, 0) : `{${items},"payload":${value(random, 2)}${again}}`;
}

function value(random: Random, depth: number): string {
  if (random.chance(depth > 5 ? 0.9 : 0.4)) return random.pick(SCALARS);
  if (random.chance(0.4)) return `[${list(random, depth)}]`;
  const members = some(random).map(() => `${random.pick(NAMES)} :${value(random, depth + 1)}`);
  return `{${members.join(',')}}`;
}

function list(random: Random, depth: number): string {
  return some(random)
    .map(() => value(random, depth + 1))
    .join(' ,');
}

function some(random: Random): unknown[] {
  return Array.from({ length: Math.floor(random.between(0, 4)) });
}

function damaged(random: Random, text: string): string {
  let at = text;
  for (let times = Math.floor(random.between(0, 4)); times > 0; times -= 1) {
    const cut = Math.floor(random.between(0, at.length + 1));
    const put = random.chance(0.5) ? random.pick(DEBRIS) : '';
    at = at.slice(0, cut) + put + at.slice(cut + Math.floor(random.between(0, 3)));
  }
  return at;
}

/** In a box, since null is a value; null: it is none. */
function parsed(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

function readOrRefused(text: string): JsonBody | null {
  try {
    const steps = readJsonBody(Buffer.from(text));
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  } catch {
    return null;
  }
}

/** Takes them out, and leaves null. */
function takePayloads(whole: unknown): Record<string, unknown> {
  const items = isObject(whole) && Array.isArray(whole['items']) ? (whole['items'] as unknown[]) : [];
  const holders = [['', whole] as const, ...items.map((item, index) => [`/items/${index}`, item] as const)];
  const payloads: Record<string, unknown> = {};
  for (const [path, holder] of holders) {
    if (!isObject(holder)) continue;
    for (const name of path === '' ? ['payload', 'result'] : ['payload']) {
      if (!(name in holder)) continue;
      payloads[`${path}/${name}`] = holder[name];
      holder[name] = null;
    }
  }
  return payloads;
}
