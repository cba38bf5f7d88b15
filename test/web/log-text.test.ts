import { expect, test } from 'vitest';
import { type LogPiece, createLogReader, isForNow } from '../../web/src/pages/run/log-text.ts';

/** Pieces of one look are one. */
function joined(pieces: readonly LogPiece[]): [text: string, classes: string][] {
  const all: [string, string][] = [];
  for (const { text, classes } of pieces) {
    const last = all.at(-1);
    if (last?.[1] === classes) last[0] += text;
    else all.push([text, classes]);
  }
  return all;
}
const shown = (text: string) => joined(createLogReader().take(Buffer.from(text)));

test('colours become classes, and nothing else of what a terminal would obey is left', () => {
  expect(shown('a\u001b[1;31mb\u001b[22mc\u001b[92;44md\u001b[0me')).toEqual([
    ['a', ''],
    ['b', 'log-bold log-fg-1'],
    ['c', 'log-fg-1'],
    ['d', 'log-fg-2 log-bg-4'],
    ['e', ''],
  ]);
  expect(shown('\u001b[38;5;1mx\u001b[48;2;1;4;31my\u001b[38:2:1:2:3mz\u001b[mw')).toEqual([['xyzw', '']]);
  const hidden =
    '\u001b]0;title\u0007\u001b[2J\u001b[?25l\u001b(B\u001bPq\u001b\\\u009b1m\u0000\u202e\u001bc';
  expect(shown(`a${hidden}b\r\nc\rd\u001b[999999999mf`)).toEqual([['a1mb\nc\ndf', '']]);
  expect(shown('<script>&amp;\u001b[31"onload=x;m')).toEqual([['<script>&amp;nload=x;m', '']]);
});

test('what two parts share is whole, wherever the cut is', () => {
  const bytes = Buffer.from('ö\u001b[1;4;36m€\u001b[0m\r\n\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\.');
  const whole = joined(createLogReader().take(bytes));
  expect(whole).toEqual([
    ['ö', ''],
    ['€', 'log-bold log-line log-fg-6'],
    ['\nlink.', ''],
  ]);
  for (let cut = 0; cut < bytes.length; cut += 1) {
    const reader = createLogReader();
    expect(joined([...reader.take(bytes.subarray(0, cut)), ...reader.take(bytes.subarray(cut))])).toEqual(
      whole,
    );
  }
});

test('a sequence without end is not kept for ever', () => {
  const reader = createLogReader();
  reader.take(Buffer.from(`\u001b]${'x'.repeat(10_000)}`));
  expect(joined(reader.take(Buffer.from('y'))).at(-1)?.[0]).toMatch(/y$/);
});

test('a log is followed on after the server was away, restarted or had too many calls; not after a refusal', () => {
  expect([429, 502, 503, 400, 403, 404].filter(isForNow)).toEqual([429, 502, 503]);
});
