/**
 * What becomes of the open runs of a schedule, if they are too many for one transaction. `deleted`: their schedule was, and they are
 * abandoned · `replaced`: a newer run of it started, and those before it are cancelled · `marked`: it was edited, and from now on they
 * count for `overlap`, `pauseAfterFailures` or `successWithinSeconds`.
 */
export type BacklogKind = 'deleted' | 'replaced' | 'marked';
