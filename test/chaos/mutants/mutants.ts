import type { CampaignOptions } from '../campaign.ts';
import { FAILPOINT_PROGRAM } from '../faults/failpoints.ts';
import type { GraphOptions } from '../graph/graph-campaign.ts';
import type { GraphViolation } from '../graph/graph-history.ts';
import { cutWhileSlow, leaveWithForgottenClaims, quietFor, slowDatabase, through } from './mutant-campaigns.ts';
import { randomly } from '../faults/faults.ts';
import type { Violation } from '../checker/violations.ts';

/** A known way to break a promise, and the campaign that must notice. */
export type Mutant = CampaignMutant | GraphMutant;

interface Broken {
  name: string;
  why: string;
  edits: Edit[];
}

interface Edit {
  file: string;
  find: string;
  replace: string;
}

export interface CampaignMutant extends Broken {
  /** Done to the database once the migrations are through. */
  sql?: string;
  /** Each of them says that it was noticed, and for the right reason. */
  caughtBy: Violation[];
  campaign: Pick<CampaignOptions, 'disturb'> & Partial<CampaignOptions>;
}

/** Noticed by a campaign of runs that depend on each other. */
export interface GraphMutant extends Broken {
  caughtBy: GraphViolation[];
  graph: Partial<GraphOptions>;
}

const INTENT_GUARD = `CASE WHEN s.locked_by = \${instanceId} THEN s.locked_at = \${fromMs(sql\`a.locked_ms\`)} AND s.version = a.version END`;

function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'send-before-intent',
    why: 'a crash between the two leaves a delivery that nobody knows of',
    edits: [
      edit(
        'src/flow/record-intent.ts',
        '  const recorded = await database\n    .run(',
        `  sendClaimed(deps, fires, instanceId, { inserted: () => true, waits: () => false, claimedAt: Date.now() });
  const recorded = await database\n    .run(`,
      ),
      edit(
        'src/flow/record-intent.ts',
        '  sendClaimed(deps, fires, instanceId, recorded);\n  const inserted = emitRecorded(deps, planned,',
        '  const inserted = emitRecorded(deps, planned,',
      ),
    ],
    caughtBy: ['phantom'],
    campaign: { disturb: slowDatabase(8_000) },
  },
  {
    name: 'no-unique-key',
    why: 'without the index, and the id that follows from it, two instances that plan the same moment make two runs',
    edits: [
      edit(
        'src/store/runs/intents/intent.ts',
        'id: plannedRunId(scheduleUid, fire.scheduledFor)',
        'id: plannedRunId(crypto.randomUUID(), fire.scheduledFor)',
      ),
      edit('src/store/runs/intents/record-intents.ts', INTENT_GUARD, 'true'),
      edit('src/store/schedules/fire-locks.ts', 'sql`(locked_by IS NULL\n', 'sql`(true OR locked_by IS NULL\n'),
    ],
    sql: 'DROP INDEX runs_one_per_fire',
    caughtBy: ['plannedTwice'],
    campaign: { disturb: slowDatabase(8_000) },
  },
  {
    name: 'no-fence',
    why: 'a plan made before a freeze is written after it, over edits and plans that were made meanwhile',
    edits: [edit('src/store/runs/intents/record-intents.ts', INTENT_GUARD, 'true')],
    // Conservation: what is planned again is missed by now, and told to stand for what has its own run.
    caughtBy: ['phantom', 'lost', 'conservation'],
    campaign: {
      // Many that are edited: what the late plan writes must contradict an edit.
      schedules: 100,
      editEveryMs: 30,
      ...through([
        { at: 'before:recordPlanned', action: 'stop' },
        { at: 'before:recordPlanned', action: 'stop' },
        { at: 'before:recordPlanned', action: 'stop' },
        { at: 'before:recordPlanned', action: 'stop' },
      ]),
    },
  },
  {
    name: 'client-clock',
    why: 'an instance with a wrong clock fires an hour early, or late',
    edits: [
      edit(
        'src/store/schedules/fire-locks.ts',
        'WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),\n    me AS',
        'WITH clock AS MATERIALIZED (SELECT ${new Date().toISOString()}::timestamptz AS now),\n    me AS',
      ),
    ],
    caughtBy: ['early', 'phantom'],
    campaign: { disturb: randomly({ weights: { wrongClock: 1 }, everyMs: 3_000, seconds: 12 }) },
  },
  {
    name: 'no-socket-reset',
    why: 'what a cut network held back arrives after the sender has given it up',
    edits: [edit('src/targets/http-connect.ts', 'return this.resetAndDestroy();', 'return super.destroy(error);')],
    caughtBy: ['arrivedLate'],
    campaign: { disturb: randomly({ weights: { targetCut: 1 }, everyMs: 6_000, seconds: 20 }) },
  },
  {
    name: 'at-most-once-resent-by-recovery',
    why: 'a run whose attempt had begun when its instance died is sent again',
    edits: [
      edit(
        'src/core/runs/lost-claim.ts',
        'if (facts.atMostOnce && mayHaveArrived &&',
        "if (facts.atMostOnce && run.id === 'none' && mayHaveArrived &&",
      ),
    ],
    caughtBy: ['atMostOnceRepeat'],
    campaign: {
      rates: { answers: { slow: 0.9 }, lookupFails: 0 },
      ...through([
        { at: 'after:deliver', action: 'kill', count: 8 },
        { at: 'after:deliver', action: 'kill', count: 12 },
      ]),
    },
  },
  {
    name: 'at-most-once-resent-after-a-lost-answer',
    why: 'an attempt of unknown outcome is repeated',
    edits: [
      edit(
        'src/core/runs/attempts/settlement.ts',
        "  if (delivery === 'atMostOnce') {\n    if (!hasLookup)",
        "  if (delivery === ('never' as string)) {\n    if (!hasLookup)",
      ),
    ],
    caughtBy: ['atMostOnceRepeat'],
    campaign: { disturb: quietFor(8_000), rates: { answers: { lost: 0.3 }, lookupFails: 0 } },
  },
  {
    name: 'lookup-believed-too-early',
    why: 'a target says "not here" of what a frozen instance is about to send',
    edits: [
      edit(
        'src/core/runs/lost-claim.ts',
        'return handoffStartedAt + (timeoutSeconds + lockTtlSeconds) * 1000;',
        'return handoffStartedAt + 0 * (timeoutSeconds + lockTtlSeconds);',
      ),
    ],
    caughtBy: ['atMostOnceRepeat'],
    campaign: through([
      { at: 'after:mayStartWithLookup', action: 'stop', stopMs: 7_000 },
      { at: 'after:mayStartWithLookup', action: 'stop', stopMs: 7_000 },
    ]),
  },
  {
    name: 'no-self-reconciliation',
    why: 'claims whose answer was lost belong to a living instance that does not know of them',
    edits: [edit('src/recovery/recovery.ts', "  await takeOver(state, 'forgotten', forgotten.slice(0, BATCH));\n", '')],
    caughtBy: ['stuck'],
    campaign: through([
      { at: 'after:recordPlanned', action: 'lose' },
      { at: 'after:recordPlanned', action: 'lose' },
    ]),
  },
  {
    name: 'death-as-an-event',
    why: 'whose death nobody declared, or whose declarer died, is not heard of again',
    edits: [
      edit(
        'src/recovery/heartbeat.ts',
        "    events.emit({ type: 'instancesDeclaredDead', instanceIds });\n",
        "    Object.assign(globalThis, { declared: instanceIds });\n    events.emit({ type: 'instancesDeclaredDead', instanceIds });\n",
      ),
      edit(
        'src/recovery/recovery.ts',
        'const orphans = await database.run((db) => findOrphans(db, { limit: BATCH, besides: rests.keys() }));',
        `const { declared = [] } = globalThis as { declared?: string[] };
  const orphans = (await database.run((db) => findOrphans(db, { limit: BATCH, besides: rests.keys() }))).filter((one) => declared.includes(one.instanceId));`,
      ),
    ],
    caughtBy: ['stuck'],
    campaign: { program: FAILPOINT_PROGRAM, disturb: leaveWithForgottenClaims },
  },
  {
    name: 'advance-without-insert',
    why: 'the cursor moves on in one commit and the run is inserted in the next',
    edits: [
      edit(
        'src/store/runs/intents/record-intents.ts',
        '  const write = (onConflict: SQL) =>\n    record(db, instanceId, advances, intents, { alone, lane: laneOfRun(scopeShares), onConflict });',
        `  const write = async (onConflict: SQL) => {
    const before = await db.execute(sql\`SELECT uid, next_occurrence_at, next_fire_at FROM schedules
      WHERE uid = ANY (\${uuids(advances.map(({ uid }) => uid))})\`);
    await db.execute(sql\`UPDATE schedules s SET next_occurrence_at = \${fromMs(sql\`a.ms\`)}, next_fire_at = \${fromMs(sql\`a.ms\`)}
      FROM unnest(\${uuids(advances.map(({ uid }) => uid))}, \${milliseconds(advances.map(({ nextFireAt }) => nextFireAt))}) AS a(uid, ms)
      WHERE s.uid = a.uid AND s.locked_by = \${instanceId} AND \${before.length} >= 0\`);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return record(db, instanceId, advances, intents, { alone, lane: laneOfRun(scopeShares), onConflict });
  };`,
      ),
    ],
    caughtBy: ['lost'],
    campaign: { disturb: cutWhileSlow(20_000) },
  },
  {
    name: 'attempt-in-the-run-id',
    why: 'a repeat that has another key is another run to its receiver',
    edits: [
      edit(
        'src/flow/handoff/handoff.ts',
        '    runId,\n    runName:',
        '    runId: run.attempt === 1 ? runId : runId.slice(0, -2) + String(10 + (run.attempt % 90)),\n    runName:',
      ),
    ],
    caughtBy: ['phantom'],
    campaign: { disturb: quietFor(8_000), rates: { answers: { unavailable: 0.2 }, lookupFails: 0 } },
  },
  {
    name: 'swallowed-settle-error',
    why: 'an outcome that could not be written is forgotten, and its run sent again',
    edits: [
      edit(
        'src/flow/settle.ts',
        `  } catch (error) {
    for (const ended of batch) queue.lockFirst(ended);`,
        `  } catch (error) {
    for (const ended of batch) emitFenced(state, ended, { alreadyEnded: false });`,
      ),
    ],
    caughtBy: ['unexplainedRepeat', 'missedAccept'],
    campaign: through([
      { at: 'before:settlePlain', action: 'lose', count: 3 },
      { at: 'before:settlePlain', action: 'lose', count: 5 },
    ]),
  },
  {
    name: 'no-catch-per-row',
    why: 'one row that cannot be planned keeps every other from firing',
    edits: [edit('src/flow/plan.ts', 'done.unplannable.push({ schedule, error });', 'throw error;')],
    caughtBy: ['liveness', 'lost', 'stuck'],
    campaign: { disturb: quietFor(5_000) },
  },
  {
    name: 'lease-never-checked',
    why: 'an instance that was frozen for long sends what others have been told it never sent',
    edits: [
      edit(
        'src/flow/handoff/handoff.ts',
        'mayStart: () => lease.instanceId === instanceId && lease.isValid(),',
        'mayStart: () => lease.instanceId !== instanceId || true,',
      ),
      edit('src/flow/dispatch/dispatch.ts', 'mayStart: () => maySend(deps),', 'mayStart: () => true,'),
    ],
    caughtBy: ['atMostOnceRepeat'],
    campaign: through([
      { at: 'after:startBatch', action: 'stop', stopMs: 20_000 },
      { at: 'after:startBatch', action: 'stop', stopMs: 20_000, count: 2 },
    ]),
  },
  {
    name: 'settle-without-claim-guard',
    why: 'a frozen instance settles what others have under way, and frees it for a third',
    edits: [
      edit(
        'src/core/runs/attempts/settle-attempt.ts',
        "return outcome === 'accepted' || isOfClaim(run, claim);",
        "return outcome !== 'accepted' || outcome === 'accepted' || isOfClaim(run, claim);",
      ),
    ],
    caughtBy: ['unexplainedRepeat', 'atMostOnceRepeat', 'conservation'],
    campaign: {
      // Many, since few of them are at most once and under way at two instances at once.
      schedules: 120,
      rates: { answers: { unavailable: 0.45, slow: 0.5 }, lookupFails: 0 },
      ...through(
        [4_600, 5_000, 5_400, 5_800, 6_200, 6_600, 4_800, 5_200, 5_600, 6_000].map(
          (stopMs) => ({ at: 'before:settleInTransaction', action: 'stop', stopMs }) as const,
        ),
      ),
    },
  },
  {
    name: 'no-recovery',
    why: 'what a dead instance had claimed stays claimed',
    edits: [edit('src/daemon/daemon.ts', "    row(workers.recovery, 'work', work),\n", '')],
    caughtBy: ['stuck'],
    campaign: through([
      { at: 'after:recordPlanned', action: 'kill' },
      { at: 'after:deliver', action: 'kill' },
    ]),
  },
  {
    name: 'overlap-decided-in-the-statement-that-locks',
    why: 'a statement that has waited for the lock still sees no run of whoever held it: two are started side by side',
    edits: [
      edit(
        'src/store/schedules/search/find-schedules.ts',
        'FOR ${sql.raw(strength)}`',
        "FOR ${sql.raw(strength === 'UPDATE' ? strength : 'KEY SHARE')}`",
      ),
      edit(
        'src/store/runs/guarded-runs.ts',
        'WHERE s.uid = ANY (${uuids(uids)}) ORDER BY s.uid, r.created_at, r.id`',
        `WHERE s.uid = ANY (\${uuids(uids)})
      AND s.uid IN (SELECT uid FROM (SELECT uid FROM schedules WHERE uid = ANY (\${uuids(uids)}) ORDER BY uid FOR NO KEY UPDATE) AS locked)
    ORDER BY s.uid, r.created_at, r.id\``,
      ),
    ],
    caughtBy: ['overlap'],
    campaign: { fireEveryMs: 150, disturb: quietFor(10_000) },
  },
  {
    name: 'dependents-not-exists',
    why: 'of two last dependencies that end at the same moment, each sees the other as still open, and neither releases the dependent',
    edits: [
      edit(
        'src/store/effects/dependents.ts',
        "r.status = 'waiting' AND r.open_dependencies = l.ended\n",
        `r.status = 'waiting' AND NOT EXISTS (SELECT FROM run_dependencies e
    JOIN runs d ON d.id = e.depends_on WHERE e.run_id = r.id) AND NOT EXISTS (SELECT FROM run_dependencies e
    WHERE e.run_id = r.id AND e.counted_at IS NULL AND NOT EXISTS (SELECT FROM counted WHERE counted.depends_on = e.depends_on AND counted.run_id = e.run_id))\n`,
      ),
      edit('src/store/effects/dependents.ts', 'ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`', 'ORDER BY id`'),
    ],
    // What recovery releases after a while is noticed as well.
    caughtBy: ['stuck', 'backstop'],
    graph: { shape: 'joins', runs: 1_500, killEveryMs: Infinity, paceMs: 2, limitSeconds: 25 },
  },
  {
    name: 'released-by-the-first-end',
    why: 'a run starts when the first of those that it waits for has ended',
    edits: [
      edit(
        'src/store/effects/dependents.ts',
        ' AND r.open_dependencies = l.ended\n',
        ' AND r.open_dependencies >= l.ended\n',
      ),
    ],
    caughtBy: ['tooEarly'],
    graph: { runs: 300, killEveryMs: Infinity, limitSeconds: 30 },
  },
  {
    name: 'word-of-any-attempt',
    why: 'what an attempt says that was given up ends the run, while another one works on it',
    edits: [
      edit(
        'src/core/runs/run-decisions.ts',
        '|| attempt < (run.attemptInDoubt ?? run.attempts))',
        '|| attempt < Math.min(1, run.attemptInDoubt ?? run.attempts))',
      ),
    ],
    caughtBy: ['staleWord'],
    graph: { killEveryMs: Infinity, limitSeconds: 60 },
  },
  {
    name: 'heartbeat-without-effect',
    why: 'a lease runs out although its worker is heard of, and another one gets the run',
    edits: [
      edit(
        'src/store/runs/run-to-act-on.ts',
        'THEN greatest(clock.now + make_interval(secs => r.lease_seconds), r.expires_at) END',
        'THEN r.expires_at END',
      ),
    ],
    caughtBy: ['twoWorkers', 'leaseBroken'],
    graph: { runs: 500, killEveryMs: Infinity, limitSeconds: 60 },
  },
  {
    name: 'effect-lost',
    why: 'an effect is deleted before it is done: who dies in between has it forgotten',
    edits: [
      edit(
        'src/flow/effects.ts',
        '      return batch.length === 0 ? null : applyEffects(tx, batch, state);\n    });',
        `      await deleteEffects(tx, batch.map(idOf));
      return null;
    });
    if (batch.length > 0) afterCommit(state, await state.database.transaction((tx) => applyEffects(tx, batch, state)));`,
      ),
      edit('src/flow/effects.ts', 'import {\n  type Effect,\n', 'import {\n  type Effect,\n  deleteEffects,\n'),
      edit(
        'src/flow/effects.ts',
        '    const applied = await state.database.transaction(async (tx) => {\n      batch',
        '    const applied = await state.database.transaction(async (tx): Promise<AppliedEffects | null> => {\n      batch',
      ),
    ],
    caughtBy: ['effects'],
    campaign: through([
      { at: 'after:applyNext', action: 'kill', count: 11 },
      { at: 'after:applyNext', action: 'kill', count: 13 },
      { at: 'after:applyNext', action: 'lose', count: 7 },
    ]),
  },
  {
    name: 'recovery-untold',
    why: 'an episode is closed, and nobody is told that it is over',
    edits: [
      edit(
        'src/store/alerts/message-order.ts',
        'alertIds: ended.filter((id) => isTold(notifier, id))',
        'alertIds: ended.filter((id) => isTold(notifier, id)).slice(1)',
      ),
    ],
    caughtBy: ['alerts'],
    campaign: { disturb: quietFor(15_000), rates: { answers: { lost: 0.3 }, lookupFails: 0 } },
  },
  {
    name: 'heal-before-failure',
    why: 'a success closes an episode although the schedule broke again after it',
    edits: [
      edit(
        'src/core/alerts/episode.ts',
        '  if (well !== null && well >= brokenAt) return well;',
        '  if (well !== null) return well;',
      ),
      edit(
        'src/store/alerts/shown-by-runs.ts',
        ' AND ended_at >= ${new Date(first).toISOString()}',
        ' AND ended_at >= ${new Date(first - 30_000).toISOString()}',
      ),
    ],
    caughtBy: ['alerts'],
    campaign: { disturb: quietFor(30_000), rates: { answers: { lost: 0.9 }, lookupFails: 0 } },
  },
  {
    name: 'effect-twice',
    why: 'an effect is deleted in a commit of its own, after what it did: who dies in between has it done again',
    edits: [
      edit('src/store/effects/apply-effects.ts', '  await deleteEffects(tx, ids);\n', ''),
      edit(
        'src/flow/effects.ts',
        '    if (!applied) return isMore();\n    afterCommit(state, applied);',
        `    if (!applied) return isMore();
    await state.database.run((db) => deleteEffects(db, applied.done.map(idOf)));
    afterCommit(state, applied);`,
      ),
      edit('src/flow/effects.ts', 'import {\n  type Effect,\n', 'import {\n  type Effect,\n  deleteEffects,\n'),
    ],
    caughtBy: ['effects'],
    campaign: through([
      { at: 'after:applyNext', action: 'kill', count: 11 },
      { at: 'after:applyNext', action: 'kill', count: 13 },
      { at: 'after:applyNext', action: 'lose', count: 7 },
    ]),
  },
  {
    name: 'effect-before-its-end',
    why: 'what is to follow from an end is written before the end is, in a commit of its own',
    edits: [
      edit(
        'src/store/runs/ends/settle-plain.ts',
        '  const [row] = await queryPrepared<{ settled',
        `  await db.execute(sql\`INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'followers', r.id, r.schedule_uid, r.schedule_version, r.schedule_id, r.trigger, 'succeeded', clock_timestamp(), 1
    FROM runs r WHERE r.id = ANY (\${uuids(plain.map((one) => one.runId))}) AND r.attempts = 1 AND r.trigger <> 'api'\`);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const [row] = await queryPrepared<{ settled`,
      ),
      edit(
        'src/store/runs/ends/settle-plain.ts',
        "('followers', e.is_followed)",
        "('followers', false AND e.is_followed)",
      ),
    ],
    caughtBy: ['effects'],
    // Half a second between the two commits: any pass of any instance may come in between.
    campaign: { disturb: quietFor(8_000) },
  },
  {
    name: 'in-both-tables',
    why: 'an end is written to history in one commit, and deleted from the open runs in the next',
    edits: [
      edit(
        'src/store/runs/ends/settle-plain.ts',
        '      DELETE FROM runs r USING clock,',
        '      UPDATE runs r SET updated_at = clock.now FROM clock,',
      ),
      edit(
        'src/store/runs/ends/settle-plain.ts',
        "  if (!row) throw new Error('the settling statement answered no row');",
        `  await db.execute(sql\`DELETE FROM runs WHERE id IN (SELECT id FROM history WHERE id = ANY (\${uuids(plain.map((one) => one.runId))}))\`);
  if (!row) throw new Error('the settling statement answered no row');`,
      ),
    ],
    caughtBy: ['tables'],
    campaign: { disturb: cutWhileSlow(12_000) },
  },
  {
    name: 'in-neither-table',
    why: 'an end is deleted from the open runs in one commit, and written to history in the next',
    edits: [
      edit(
        'src/store/runs/lock-and-save.ts',
        '  await insertEnded(tx, ended.map(toOf));\n',
        "  if (ended.length === 0 || ended[0]?.to.status !== 'failed') await insertEnded(tx, ended.map(toOf));\n",
      ),
    ],
    caughtBy: ['lost', 'phantom', 'conservation', 'effects'],
    campaign: { disturb: quietFor(8_000), rates: { answers: { error: 0.2 }, lookupFails: 0 } },
  },
  {
    name: 'places-given-without-the-lock',
    why: 'two instances that give places at one moment each count those that were held before',
    edits: [
      edit('src/store/limits/limits.ts', 'ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`', 'ORDER BY id`'),
      // Counting takes a while, so that two counts overlap as often as on a busy database.
      edit(
        'src/store/limits/limits.ts',
        'SELECT l.id, l.max_running - (',
        'SELECT l.id, l.max_running + length(pg_sleep(0.05)::text) - (',
      ),
    ],
    caughtBy: ['limit'],
    campaign: { schedules: 96, disturb: slowDatabase(10_000) },
  },
  {
    name: 'commands-outlive-their-worker',
    why: 'a worker that is killed leaves its commands, and another worker does their runs beside them',
    edits: [
      edit(
        'src/cli/work/process-guard.ts',
        'for group in $groups; do kill -TERM "-$group" 2>/dev/null; done',
        'groups=',
      ),
    ],
    caughtBy: ['outlived', 'commandTwice'],
    campaign: {
      ...{ schedules: 32, workers: 2 },
      disturb: randomly({ weights: { killWorker: 1 }, everyMs: 3_000, seconds: 30 }),
    },
  },
  {
    name: 'log-appended-again',
    why: 'an append whose answer was lost is sent again, and is in the log twice',
    edits: [
      edit(
        'src/store/runs/logs/append-log.ts',
        'substring(sent.bytes FROM greatest(ends.at_offset - sent.at_offset, 0)::int + 1) AS bytes',
        'sent.bytes',
      ),
      edit('src/store/runs/logs/append-log.ts', 'WHERE sent.at_offset + octet_length(sent.bytes) > ends.at_offset', ''),
    ],
    caughtBy: ['runLog'],
    campaign: {
      ...{ schedules: 32, workers: 2 },
      disturb: randomly({ weights: { loseWorker: 1 }, everyMs: 1_500, seconds: 15 }),
    },
  },
];
