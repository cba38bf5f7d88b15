/** Bytes of answers that are written and not yet read. A page of a list has 4 MiB (PAGE_BYTES). */
export interface AnswerLimits {
  /** Of one caller; where callers have no names, of one address. */
  ofCaller: number;
  inAll: number;
}

const MIB = 1024 * 1024;

/** With the limits of every installation. */
export const ANSWER_LIMITS: AnswerLimits = { ofCaller: 32 * MIB, inAll: 128 * MIB };
