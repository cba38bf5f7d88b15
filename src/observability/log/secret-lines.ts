import type { Logger } from './logger.ts';

/** Logs the missing keys when they change, not with every sample. */
export function secretKeysLogger(logger: Logger): (missing: readonly string[]) => void {
  let known = '';
  return (missing) => {
    const now = missing.join(', ');
    if (now !== '' && now !== known) {
      logger.error(
        { keyIds: missing },
        'schedules have secrets that are encrypted with keys which FIRELOCK_SECRET_KEYS does not have: their targets cannot be called (docs/security.md)',
      );
    } else if (now === '' && known !== '') {
      logger.info('no secret of a schedule lacks its key any more');
    }
    known = now;
  };
}
