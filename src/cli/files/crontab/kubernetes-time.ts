import { NotCarriedOver, checkTimes } from './imported.ts';

/** When a CronJob runs, as firelock writes it. @throws NotCarriedOver */
export function kubernetesTimes(
  schedule: string,
  { timeZone, standard }: { timeZone: string | null; standard: string },
): Record<string, unknown> {
  const [, named, rest = schedule] = /^(?:CRON_)?TZ=(\S+)\s+(.*)$/s.exec(schedule) ?? [];
  const [, duration] = /^@every\s+(\S+)$/.exec(rest.trim()) ?? [];
  if (duration !== undefined) return { everySeconds: secondsOf(duration) };
  const timezone = timeZone ?? named ?? standard;
  const cron = rest.trim().split(/\s+/).map(fieldOf).join(' ');
  checkTimes(cron, timezone);
  return { cron, timezone };
}

/** In Kubernetes, `?` means `*`, and `5/15` begins at 5. firelock gives these another meaning. */
function fieldOf(field: string, index: number): string {
  if (field.startsWith('@')) return field;
  if (/[LWH#+]/.test(field.replace(/[a-z]{3}/gi, '')))
    throw new NotCarriedOver(`“${field}” is not what Kubernetes understands`);
  if (/[*?][^,]*,|,[*?]/.test(field)) throw new NotCarriedOver(`“${field}” is a list with * in it`);
  return field.replaceAll('?', '*').replace(/(^|,)(\d+)\//g, `$1$2-${HIGHEST[index] ?? 0}/`);
}

const HIGHEST = [59, 23, 31, 12, 6];

function secondsOf(duration: string): number {
  const [, hours = '0', minutes = '0', seconds = '0'] =
    /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(duration) ?? [];
  const total = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  if (total === 0) throw new NotCarriedOver(`@every ${duration} is not a number of whole seconds`);
  return total;
}
