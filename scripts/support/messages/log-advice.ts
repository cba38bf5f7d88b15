function row(of: string): string {
  return `Read \`error\`, and look at the ${of} for a value that another program wrote. The others of its kind go on.`;
}

const TOKEN =
  'Give the caller a valid token. If many of these lines name one address, a stranger may be guessing tokens.';
const MAINTENANCE = 'End it when it is no longer needed ([maintenance.md](maintenance.md)).';
const EXPIRED = 'See [FirelockCompletionsExpiring](runbook.md#firelockcompletionsexpiring).';

/** What an operator does about each line of the log at level warn and above, by its text. */
export const LOG_ADVICE: Readonly<Record<string, string>> = {
  // fatal
  'an internal error of firelock; the process ends, and other instances take over its work':
    'Let your platform start it again. Report it with the stack: it is a fault of firelock.',
  'port … of … is taken; set FIRELOCK_METRICS_PORT to another one':
    'Choose another port, or end the process that has it.',
  'port … of … is taken; set PORT to another one': 'Choose another port, or end the process that has it.',
  'the … loop is stuck: a pass has not ended; the process ends and should be started again':
    'See [FirelockLoopStuck](runbook.md#firelockloopstuck). Keep the log and report it.',

  // error: a row that the database refuses
  'a lost run cannot be taken over because the database refuses to write its row': row('run'),
  'a run cannot be claimed because the database refuses to write its row; it is retried later': row('run'),
  'a run that was silent, or waited, for too long cannot be retried or ended because the database refuses to write its row':
    row('run'),
  'runs of a limit cannot get places because the database refuses to write a row': row('limit'),
  'the database refused an outcome; it is saved without the response body':
    'Usually nothing: the run has ended. `error` says what the body contained.',
  'an alert or its message could not be written; this is retried': row('alert'),
  'that a run did not keep a bound could not be recorded; this is retried': row('run'),
  'the pause of a schedule has ended, but the schedule could not be enabled; this is retried':
    'Read `error`. Put the schedule right with a PUT if its definition is at fault.',
  'a schedule cannot be planned; it is set aside and retried later':
    'See [FirelockScheduleSetAside](runbook.md#firelockschedulesetaside).',
  'what follows from the end of a run, an edit or a deletion failed; it will be retried':
    'See [FirelockEffectsFailing](runbook.md#firelockeffectsfailing).',

  // error: runs that end without an outcome
  'runs were written while the clock of the database was ahead; they go on as of now':
    'See [FirelockSchedulesAhead](runbook.md#firelockschedulesahead): schedules do not go on by themselves.',
  'runs expired while they waited to be tried again':
    'Read `error` of the runs, which says what failed before; [fires.md](fires.md#when-a-run-has-waited-too-long-expiry).',
  'a lost run was abandoned': 'See [FirelockRunsGivenUp](runbook.md#firelockrunsgivenup); `reason` says why.',
  'a run was lost during its handoff; its outcome stays unknown':
    'Ask the target whether it has the run; see [FirelockRunsGivenUp](runbook.md#firelockrunsgivenup).',

  'a message of a notifier was not delivered':
    'See [FirelockNotificationsFailing](runbook.md#firelocknotificationsfailing).',

  // error: the instance and its database
  'could not stop the … service': 'Nothing: the process ends. Report it if it happens at every stop.',
  'schedules or connections have secrets that are encrypted with keys missing in FIRELOCK_SECRET_KEYS; their targets cannot be called (docs/secrets.md)':
    'Add the keys that `keyIds` names to `FIRELOCK_SECRET_KEYS`, in every instance, and restart it.',
  'the database lost commits that it had confirmed (a failover, or a restored backup); fires of the lost time are planned again under their old ids (docs/restoring.md)':
    'See [FirelockDatabaseWentBack](runbook.md#firelockdatabasewentback).',
  '…: firelock tries again until somebody mends that':
    'Mend what the line says; `reason` is what the database said. See [FirelockNoLease](runbook.md#firelocknolease).',
  'the file of tokens has faults; the tokens known before stay in force':
    'Correct the lines that `faults` names, and send SIGHUP again.',
  'the watchdog thread has ended: a blocked event loop will not be noticed':
    'Restart the instance when it suits you. `err` says why.',
  'a call failed with an unexpected error':
    'A call was answered 500. Report it with the stack: it is a fault of firelock.',

  'this instance lacks what it takes to send: its runs go back without a failure, and it claims none until it can':
    'Give the process more of what `reason` names: `ulimit -n`, `LimitNOFILE`, ports (`net.ipv4.ip_local_port_range`), memory.',
  'this process may have fewer file descriptors than it needs with these settings (ulimit -n, LimitNOFILE)':
    'Raise the limit to `needed`, or lower `FIRELOCK_DISPATCH_CONCURRENCY`.',
  'the PostgreSQL is embedded: one machine without a standby, for trials, not for production; set DATABASE_URL':
    'Nothing while it is a trial. [restoring.md](restoring.md#dump-and-restore) moves its data to a server.',
  'parameters in the URL of the database have no effect':
    'Nothing, if `ignored` says why firelock does as well without them; else take them out.',

  // warn: calls
  'FIRELOCK_ALLOW_ANONYMOUS=1 and no tokens: every caller that reaches this address may do everything (docs/security.md)':
    'Configure tokens, unless everybody in this network may change schedules.',
  'call refused: a page of another site tried to change something':
    'Usually nothing. If the page is yours, let its server make the call with a token.',
  'call refused: a trusted proxy sent no valid X-Firelock-User and X-Firelock-Role':
    'Correct the proxy ([deploying.md](deploying.md#behind-a-proxy)).',
  'call refused: its token has expired': TOKEN,
  'call refused: its token is mistyped or cut off (the checksum is wrong)': TOKEN,
  'call refused: its token is unknown, or known no longer': TOKEN,
  'call refused: what it sent does not have the form of a token': TOKEN,
  'call refused: there are no tokens, and FIRELOCK_ALLOWED_HOSTS does not name this host':
    'Add the host to `FIRELOCK_ALLOWED_HOSTS`, or configure tokens.',
  'call refused: there are no tokens, and the call came through a proxy':
    'Configure tokens ([deploying.md](deploying.md#behind-a-proxy)).',
  'request failed': 'A call was answered 5xx; the line before it says why.',
  'the database refused a value of a request': 'Nothing: the caller got 400. `err` says what is wrong with it.',

  // warn: the instance and its database
  'a migration waits for a transaction that uses its table; this instance starts its work afterwards, and instances of the previous version continue':
    'Wait, or end the transaction that the line names ([deploying.md](deploying.md#migrations)).',
  'a migration is cut off by the statement_timeout of its role or database; this instance starts its work afterwards, and instances of the previous version continue':
    '`ALTER ROLE … SET statement_timeout = 0` for the role that migrates; the line says what it is now.',
  'a partition of history cannot be created because another transaction is in the way; this is retried, and nothing stops meanwhile':
    'See [FirelockHistoryDaysMissing](runbook.md#firelockhistorydaysmissing).',
  'FIRELOCK_SCHEDULES_FILE is not applied yet: …': 'It is retried. Bring the database back if it is away.',
  'living instances have different time zone data and may plan fires at different times in zones whose rules differ; finish the rollout':
    'See [FirelockZoneDataMixed](runbook.md#firelockzonedatamixed).',
  'this instance only observes: it answers reads, and plans and sends nothing until a take-over':
    'If it should fire: take over ([restoring.md](restoring.md#a-standby-that-only-observes)).',
  'this installation has taken over, and this instance still only observes, since FIRELOCK_OBSERVE is set':
    'Start it without `FIRELOCK_OBSERVE`, if it should fire.',
  'this installation has taken over: this instance works, and fires what was due since then':
    'A caller used `firelock take-over`; `GET /audit` says who. The other installation must not work any more.',
  'maintenance: no schedule is planned, and no run is handed off': MAINTENANCE,
  'maintenance: no schedule is planned; recorded runs are handed off': MAINTENANCE,
  'no maintenance: fires that were due meanwhile are planned now, by the catchUp of each schedule': 'Nothing.',
  'silent instances declared dead; their runs are taken over':
    'Find out why these instances ended ([FirelockInstanceDown](runbook.md#firelockinstancedown)).',
  'the instance left with unfinished work; other instances take it over':
    'Nothing. If it happens at every stop, raise `FIRELOCK_SHUTDOWN_SECONDS`.',
  'the other instances had declared this one dead (it was frozen, or cut off from the database); it continues under a new id':
    'See [FirelockInstanceReplaced](runbook.md#firelockinstancereplaced).',
  'the shutdown time is over; handoffs still under way are aborted':
    'Nothing: at-least-once runs are sent again. If it happens often, raise `FIRELOCK_SHUTDOWN_SECONDS`.',
  'the … loop failed; it is retried until it works': 'See [FirelockLoopFailing](runbook.md#firelockloopfailing).',
  'the … service has not stopped in time': 'Nothing: the process ends all the same.',
  'the trace collector does not accept spans; fires are not affected, and traces have gaps if this takes long':
    'See [FirelockSpansDropped](runbook.md#firelockspansdropped).',
  '… again: the process ends at once; other instances take over what is under way': 'Nothing: you asked for it.',

  // warn: schedules
  'a schedule is late: no run of it has succeeded in time':
    'See [FirelockSchedulesLate](runbook.md#firelockscheduleslate).',
  'schedules were planned while the clock of the database was ahead, and are silent until it comes there again; `firelock resume --from-now` sets them back':
    'See [FirelockSchedulesAhead](runbook.md#firelockschedulesahead).',
  'schedules of the set of FIRELOCK_SCHEDULES_FILE are not in the file, and go on; `prune: true` in the file deletes them':
    'Delete them, or say `prune: true` in the file ([git.md](git.md#when-a-daemon-starts)).',
  'firelock paused a schedule because its target is gone, or too many of its runs failed':
    'See [FirelockSchedulePaused](runbook.md#firelockschedulepaused).',
  'fires were missed: when they were planned, they had been due for longer than their grace period':
    'Find out why nothing planned them (no instance, no database). `catchUp` has decided what became of them.',
  'some next fires could not be moved after an edit of a calendar; this is retried until it works':
    'Read `reason`. Until then these schedules may wake at their old time; they plan by the new calendar.',
  'took over fire-locks whose instance no longer works on them':
    'Nothing: the fires are planned. If it happens without a dead instance, look for one that is frozen.',

  // warn: alerts, and messages of notifiers
  'an alert opened': 'Look at the schedule: `firelock alert list --open` says what is wrong ([alerts.md](alerts.md)).',
  'a message of a notifier could not be delivered; another attempt follows':
    'Read `error`. It is tried for a day; see [FirelockNotificationsFailing](runbook.md#firelocknotificationsfailing).',
  'messages of notifiers have waited for longer than five minutes':
    'Look at the runs with trigger `notify`: their errors say why ([FirelockNotificationsFailing](runbook.md#firelocknotificationsfailing)).',

  // warn: runs
  'a run did not begin in the time that its schedule expects':
    'Look at the run: what it waits for, a limit, an earlier run, maintenance, a worker ([alerts.md](alerts.md#runs-that-are-not-as-expected)).',
  'a run did not end in the time that its schedule expects':
    'Look at the run: it may still be under way, or be tried again ([alerts.md](alerts.md#runs-that-are-not-as-expected)).',
  'a run succeeded sooner than its schedule expects':
    'Look at its work: there may have been nothing to do ([alerts.md](alerts.md#runs-that-are-not-as-expected)).',
  'a run succeeded, and its result is not what its schedule expects':
    'Look at the run: its `unmetReason` says what is not so ([alerts.md](alerts.md#runs-that-are-not-as-expected)).',
  'a target was not called: its address is blocked (docs/addresses.md)':
    'Correct the URL, or allow the address with `FIRELOCK_TARGET_ALLOW_CIDRS`.',
  'a token server was not called: its address is blocked (docs/addresses.md)':
    'Correct the `tokenUrl`, or allow the address with `FIRELOCK_TARGET_ALLOW_CIDRS`.',
  'an outcome came too late: this instance has no claim on the run any more; only the attempt log has the outcome':
    'Nothing: another instance has the run. If it happens often, the instance is frozen at times.',
  'handoffs cannot start because the database does not record their start; their runs will be retried':
    'Bring the database back ([FirelockNoLease](runbook.md#firelocknolease)).',
  'lost runs found: they are retried, or ended as this line and the next ones say':
    'See [FirelockRunsLost](runbook.md#firelockrunslost).',
  'no worker or target reported on these runs in time: they are retried, or ended as this line says': EXPIRED,
  'open runs abandoned': 'Nothing: their schedule was deleted.',
  'run failed': 'See [FirelockRunsFailing](runbook.md#firelockrunsfailing); `error` says why.',
  'run failed: its worker or target did not report in time, and no attempt is left': EXPIRED,
  'run reported as failed': 'The target or the worker says so; `error` is its own text.',
  'runs failed before their start because a run that they depend on did not succeed':
    'Repair and retry the run that they depend on, then retry these.',
  'the outcome of a run stays unknown: its worker or target did not report in time, and the run is not repeated':
    EXPIRED,
  'the outcome of a run stays unknown; the run is not repeated':
    'Ask the target whether it has the run; see [FirelockRunsGivenUp](runbook.md#firelockrunsgivenup).',
  'the target could not be told that the run is cancelled':
    'Stop the work at the target yourself, if it must stop. `error` says why the call failed.',
  'the worker or target of a run did not report in time; another attempt follows': EXPIRED,
  'the worker or target of a run did not report in time; the target is asked what became of it': EXPIRED,
  'unsent claims dropped: other instances have taken these runs over': 'Nothing: they had not been sent.',
  'waiting runs had nothing left to wait for; they are released':
    'Nothing for the runs. Find out which program deletes rows of firelock by hand.',
};
