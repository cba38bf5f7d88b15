/**
 * What may follow from the end of a run. Each is a row of its own, written in the commit of the end:
 * `followers`: schedules that fire after this one get a run · `dependents`: runs that depend on it are counted down ·
 * `overlap`: another run of its schedule may start · `cancel`: its target is called, since it was cancelled ·
 * `gone`: its target answered 410, so its schedule is paused · `failing`: it did not succeed, and its schedule is paused after so many.
 * `followers` is also written of a schedule that is late: then it is about no run.
 */
export type EffectKind = 'followers' | 'dependents' | 'overlap' | 'cancel' | 'gone' | 'failing';
