#!/bin/sh
# A pull worker in plain sh and curl: runs COMMAND for each run of QUEUE, one at a time, with the run as JSON on its stdin,
# and RUN_ID and ATTEMPT in its environment. A run may come twice: RUN_ID tells.
#
#   ./pull-worker.sh QUEUE COMMAND [ARGUMENT...]
#
# COMMAND ends with 0: succeeded; with 75 (EX_TEMPFAIL): "later", for which the lease is left to run out; else: failed, for
# good. The first 4000 bytes of its stdout are the result, without control characters but line ends. When the lease is lost
# it gets SIGTERM; what it has started itself is up to it. SIGTERM to the worker: the run in hand is finished.
#
# FIRELOCK_URL (http://127.0.0.1:8080), WORKER_ID (host and process), LEASE_SECONDS (30; at least 3), FIRELOCK_TOKEN (of role
# worker; none where the daemon asks for none)
set -eu

if [ $# -lt 2 ]; then
  echo "usage: $0 QUEUE COMMAND [ARGUMENT...]" >&2
  exit 2
fi
queue=$1
shift
url=${FIRELOCK_URL:-http://127.0.0.1:8080}
api=${url%/}/api/v1
worker=${WORKER_ID:-$(uname -n)-$$}
# They go into a URL and into JSON as they are.
case $queue$worker in
*[!A-Za-z0-9._-]*)
  echo "$0: QUEUE and WORKER_ID are letters, digits, dots, dashes and underscores" >&2
  exit 2
  ;;
esac
lease=${LEASE_SECONDS:-30}
files=$(mktemp -d)
# In a file that only we can read: arguments of curl can be seen by others on this machine.
printf '%s\n' 'content-type: application/json' ${FIRELOCK_TOKEN:+"authorization: Bearer $FIRELOCK_TOKEN"} >"$files/headers"
trap 'rm -rf "$files"' EXIT
stopping=
idle=
# What only waits is cut short. If that is a claim, the daemon takes back what it claimed for who hung up.
trap 'stopping=1; [ -z "$idle" ] || kill "$idle" 2>/dev/null || :' TERM INT

say() { echo "$worker: $*" >&2; }

# POSTs BODY; the answer goes to a file of that NAME, the status to stdout: 000 where there is none. Ends its (sub)shell:
# in the background, the process is curl itself and can be killed.
ask() { # NAME PATH BODY
  printf '%s' "$3" >"$files/$1.body"
  exec curl -sS --max-time 30 -o "$files/$1" -w '%{http_code}' -H "@$files/headers" \
    --data-binary "@$files/$1.body" "$api$2"
}

# Exit code of a child, at its end: a signal to the worker only interrupts `wait`.
await() {
  while :; do
    code=0
    wait "$1" || code=$?
    kill -0 "$1" 2>/dev/null || return "$code"
  done
}

# At a third of the lease, so that two may be lost. For as long as the job and the worker live: a lease must not outlive them.
# (It is killed too, but a signal that comes when a subshell has just been started can be lost.)
beat() { # JOB
  while sleep "$(((lease + 2) / 3))" >/dev/null 2>&1 && kill -0 "$$" 2>/dev/null && kill -0 "$1" 2>/dev/null; do
    case $(ask beat "/runs/$run/heartbeat" "{$speaker}") in
      404 | 409) # Cancelled, or expired and claimed again: not ours any more.
        say "$run: stopped: $(cat "$files/beat")"
        kill "$1" 2>/dev/null
        return
        ;;
      *) ;; # Taken; or the daemon is away: whether the lease was lost meanwhile, it says when it is back.
    esac
  done
}

# stdin as the inside of a JSON string: no half characters, no control characters.
text() {
  head -c 4000 |
    if command -v iconv >/dev/null; then iconv -c -f UTF-8 -t UTF-8 2>/dev/null; else LC_ALL=C tr -d '\200-\377'; fi |
    LC_ALL=C tr '\011' ' ' | LC_ALL=C tr -d '\000-\010\013-\037\177' | LC_ALL=C sed 's/[\\"]/\\&/g' |
    LC_ALL=C awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
}

lead() { # COMMAND...
  # Word of one attempt by one worker: if the run has gone on without us, it is refused.
  speaker='"attempt":'$attempt',"workerId":"'$worker'"'
  sed -e 's/^{"items":\[//' -e 's/\]}$//' "$files/claim" >"$files/run"
  RUN_ID=$run ATTEMPT=$attempt "$@" <"$files/run" >"$files/output" &
  job=$!
  beat "$job" &
  beating=$!
  code=0
  await "$job" || code=$?
  kill "$beating" 2>/dev/null || :
  case $code in
    0) end='"status":"succeeded"' ;;
    75) say "$run: left for later" && return ;;
    *) end='"status":"failed","error":"exit code '$code'"' ;;
  esac
  end="{$end,$speaker,\"result\":\"$(text <"$files/output")\"}"
  # Until an instance takes the report: an unreported run is done again.
  while :; do
    status=$(ask report "/runs/$run/complete" "$end") || :
    case $status in
      200) say "$run: exit code $code" && return ;;
      408 | 429 | 5?? | 000) sleep 2 ;;
      *) say "$run: not taken: $(cat "$files/report")" && return ;;
    esac
  done
}

say "waits for work in $queue"
pause=1
while [ -z "$stopping" ]; do
  ask claim "/queues/$queue/claim" '{"workerId":"'"$worker"'","leaseSeconds":'"$lease"',"waitSeconds":20}' >"$files/status" &
  idle=$!
  await "$idle" || :
  idle=
  case $(cat "$files/status") in
    200)
      pause=1
      # Cut out without a JSON parser: `id` comes first, `attempts` before everything that a client can have put there.
      # Where that does not hold, the worker stops, rather than guess.
      fields=$(sed 's/"payload":.*//' "$files/claim")
      [ "$fields" != '{"items":[]}' ] || continue
      run=$(printf '%s\n' "$fields" | sed -n 's/^{"items":\[{"id":"\([0-9a-f-]*\)".*/\1/p')
      attempt=$(printf '%s\n' "$fields" | sed -n 's/.*"attempts":\([0-9][0-9]*\).*/\1/p')
      if [ -z "$run" ] || [ -z "$attempt" ]; then say "cannot read $fields" && exit 1; fi
      lead "$@"
      ;;
    408 | 429 | 5?? | 000 | '')
      [ -z "$stopping" ] || break
      say "no work to be had: again in $pause s"
      sleep "$pause" &
      idle=$!
      await "$idle" || :
      idle=
      [ "$pause" -ge 30 ] || pause=$((pause * 2))
      ;;
    *) say "$(cat "$files/claim")" && exit 1 ;;
  esac
done
say "has stopped"
