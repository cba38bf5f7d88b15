/** Wakes loops of this process that have work: hints, since each loop would find its work by itself a little later. */
export interface Wake {
  /** Effects, or backlogs, were written. */
  effects(): void;
  /** Runs may be claimed. */
  dispatch(): void;
  /** Workers may pull runs. */
  workers(): void;
  /** Runs with a limit are due, or have given up their places. */
  admission(): void;
  /** Messages of notifiers were recorded, or episodes of schedules that were edited are to be looked at. */
  alerts(): void;
}

/** The work that a commit has left. */
export interface Work {
  effects?: number;
  toClaim?: number;
  toPull?: boolean;
  toAdmit?: boolean;
  messages?: number;
}

export function wakeFor(
  wake: Wake,
  { effects = 0, toClaim = 0, toPull = false, toAdmit = false, messages = 0 }: Work,
): void {
  if (effects > 0) wake.effects();
  if (toClaim > 0) wake.dispatch();
  if (toPull) wake.workers();
  if (toAdmit) wake.admission();
  if (messages > 0) wake.alerts();
}

/** What all parts of a commit have left. */
export function allWork(parts: readonly Work[]): Required<Work> {
  const sum = (name: 'effects' | 'toClaim' | 'messages') => parts.reduce((total, part) => total + (part[name] ?? 0), 0);
  const any = (name: 'toPull' | 'toAdmit') => parts.some((part) => part[name] === true);
  return {
    ...{ effects: sum('effects'), toClaim: sum('toClaim'), messages: sum('messages') },
    ...{ toPull: any('toPull'), toAdmit: any('toAdmit') },
  };
}
