/**
 * When a cron expression fires in UTC, by trying every second: slow, and nothing of the daemon's own calendar. Knows
 * six fields (or five) whose first three are stars, numbers or a star with a step; the rest must be stars, for that is all the load uses.
 */
export function occurrences(cron: string, after: number, until: number): number[] {
  const matches = matcher(cron);
  const found: number[] = [];
  for (let at = (Math.floor(after / 1000) + 1) * 1000; at <= until; at += 1000) {
    if (matches(at)) found.push(at);
  }
  return found;
}

/** After one moment and up to another: the anchor and every so many seconds from there. */
export function intervals(anchor: number, everySeconds: number, after: number, until: number): number[] {
  const found: number[] = [];
  for (let at = anchor; at <= until; at += everySeconds * 1000) if (at > after) found.push(at);
  return found;
}

function matcher(cron: string): (at: number) => boolean {
  const given = cron.split(' ');
  const fields = given.length === 5 ? ['0', ...given] : given;
  const [second = '', minute = '', hour = '', ...days] = fields;
  if (days.length !== 3 || days.some((field) => field !== '*'))
    throw new Error(`the oracle cannot read ${cron}`);
  const tests = [second, minute, hour].map(fieldTest);
  return (at) => {
    const date = new Date(at);
    const values = [date.getUTCSeconds(), date.getUTCMinutes(), date.getUTCHours()];
    return tests.every((test, index) => test(values[index] ?? -1));
  };
}

function fieldTest(field: string): (value: number) => boolean {
  if (field === '*') return () => true;
  const step = /^\*\/(\d+)$/.exec(field)?.[1];
  if (step !== undefined) return (value) => value % Number(step) === 0;
  if (!/^\d+$/.test(field)) throw new Error(`the oracle cannot read ${field}`);
  return (value) => value === Number(field);
}
