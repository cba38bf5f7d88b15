const TONES: Record<string, string> = {
  succeeded: 'good',
  active: 'good',
  ok: 'good',
  alive: 'good',
  dead: 'calm',
  running: 'busy',
  pending: 'busy',
  waiting: 'calm',
  failed: 'bad',
  error: 'bad',
  unknown: 'doubt',
  abandoned: 'bad',
  late: 'doubt',
  unstarted: 'doubt',
  slow: 'doubt',
  missed: 'doubt',
  paused: 'doubt',
  skipped: 'calm',
  cancelled: 'calm',
  ended: 'calm',
};

/** A status, as the API calls it. Its word says it, and its colour only helps. */
export function Badge({ status, title }: { status: string; title?: string | undefined }) {
  return (
    <span class={`badge ${toneOf(status)}`} title={title}>
      {status}
    </span>
  );
}

/** `good`, `bad`, `busy`, `doubt` or `calm`: classes that have a colour. */
export function toneOf(status: string): string {
  return TONES[status] ?? 'calm';
}
