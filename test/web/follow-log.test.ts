import { expect, test, vi } from 'vitest';

test('a log is followed on after the server was away, or restarting; not after a refusal', async () => {
  vi.useFakeTimers();
  const listeners = { addEventListener: vi.fn(), removeEventListener: vi.fn() };
  vi.stubGlobal('document', { baseURI: 'http://127.0.0.1/', hidden: false, ...listeners });
  vi.stubGlobal('localStorage', { getItem: () => null });
  vi.stubGlobal('sessionStorage', { getItem: () => null });
  const answers = [503, 429, 404, 200];
  const fetched = vi.fn(() => Promise.resolve(new Response('{}', { status: answers.shift() ?? 200 })));
  vi.stubGlobal('fetch', fetched);
  const { followLog } = await import('../../web/src/pages/run/follow-log.ts');
  const state = vi.fn();
  const stop = followLog('run', 1, { pieces: () => undefined, gap: () => undefined, state });
  await vi.advanceTimersByTimeAsync(60_000);
  stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  expect([fetched.mock.calls.length, state.mock.calls.length]).toEqual([3, 1]);
});
