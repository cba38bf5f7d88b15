/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** It could not be started at all. */
  fault?: NodeJS.ErrnoException;
}

/** What the worker did about it: nothing; its time was over; its worker had to stop. */
export type Interruption = 'none' | 'timeout' | 'stopped';

/** What is reported of a run. */
export interface JobEnd {
  status: 'succeeded' | 'failed';
  /** It failed for now. */
  retry?: true;
  error?: string;
  result?: string;
}

export interface EndRules {
  /** Exit codes that say "later", beside EX_TEMPFAIL. */
  retryExits: readonly number[];
  timeoutSeconds: number | null;
}

/** `sysexits.h`: try again later. */
const EX_TEMPFAIL = 75;
/** This machine lacks something at the moment. */
const SHORTAGES = ['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE', 'ENOSPC'];
const MEANINGS: Readonly<Record<number, string>> = {
  126: ': the command cannot be executed',
  127: ': there is no such command',
};

/** What this end means for the run, by the exit code or signal. */
export function endOf(exit: Exit, why: Interruption, { retryExits, timeoutSeconds }: EndRules): JobEnd {
  const { code, signal, fault } = exit;
  if (fault) {
    const error = `the command could not be started: ${fault.message}`;
    return SHORTAGES.includes(fault.code ?? '') ? forNow(error) : { status: 'failed', error };
  }
  const how = signal === null ? `exit code ${code ?? 0}` : `ended by ${signal}`;
  if (why === 'timeout') return forNow(`not done after ${timeoutSeconds ?? 0} s: ${how}`);
  if (why === 'stopped') return forNow(`the worker was stopped: ${how}`);
  if (code === 0) return { status: 'succeeded' };
  if (code !== null && (code === EX_TEMPFAIL || retryExits.includes(code))) return forNow(how);
  return { status: 'failed', error: how + (MEANINGS[code ?? 0] ?? '') };
}

function forNow(error: string): JobEnd {
  return { status: 'failed', retry: true, error };
}
