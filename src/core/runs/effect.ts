/**
 * What may follow from the end of a run. Each effect is a row of its own, written in the commit of the end:
 * `followers`: schedules that fire after this one get a run · `dependents`: runs that depend on it are counted down ·
 * `overlap`: another run of its schedule may start · `cancel`: firelock calls its target, since it was cancelled ·
 * `gone`: its target answered 410, so its schedule is paused · `failing`: it did not succeed, and its schedule is
 * paused after enough failures · `breaks`, `heals`: an episode of
 * its schedule opens, or is over · `undelivered`: it is a notifier's message, and did not succeed. `followers` is also
 * written for a schedule that is late, and `breaks` and `heals` for what is about no run.
 */
export type EffectKind =
  'followers' | 'dependents' | 'overlap' | 'cancel' | 'gone' | 'failing' | 'breaks' | 'heals' | 'undelivered';

/** Those about episodes and who is told of them. However many there are, no follower and no dependent waits behind them. */
export const ALERT_EFFECTS = ['breaks', 'heals', 'undelivered'] as const satisfies readonly EffectKind[];

/**
 * What becomes of the open runs of a schedule, if they are too many for one transaction. `deleted`: their schedule was, and they are
 * abandoned · `replaced`: a newer run of it started, and those before it are cancelled · `marked`: it was edited, and from now on they
 * count for `overlap`, `pauseAfterFailures` or `successWithinSeconds`.
 */
export type BacklogKind = 'deleted' | 'replaced' | 'marked';
