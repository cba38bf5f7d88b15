#!/usr/bin/env bash
# Takes runs from firelock, in bash: verifies the signature, notes each run once in a folder, answers, and then runs COMMAND
# with the body of the run on its stdin and RUN_ID in its environment. If COMMAND fails, it is run again with the next run.
#
#   WEBHOOK_SECRET=whsec_... ./receiver.sh COMMAND [ARGUMENT...]      several secrets: with spaces between them
#                                                                     PORT (9000), DIRECTORY (runs), in which it remembers
#
# It needs socat, flock and setsid (util-linux), and the coreutils of GNU. socat calls it once for each connection. It cannot compare in constant time:
# it compares hashes instead, of which nobody can choose the beginning.
set -euo pipefail

export LC_ALL=C
export DIRECTORY=${DIRECTORY:-runs}
most_bytes=$((16 * 1024 * 1024))

# Standard input, as hexadecimal digits become bytes.
bytes() { sed 's/../\\x&/g' | xargs -0 printf '%b'; }

# HMAC-SHA256 of stdin in hexadecimal. By hand: what is an argument of a program can be seen by others on this machine.
hmac() { # KEY, in hexadecimal
  local key=$1 inner="" outer="" i
  while ((${#key} < 128)); do key+=00; done
  for ((i = 0; i < 128; i += 2)); do
    printf -v inner '%s\\x%02x' "$inner" $((16#${key:i:2} ^ 0x36))
    printf -v outer '%s\\x%02x' "$outer" $((16#${key:i:2} ^ 0x5c))
  done
  { printf '%b' "$outer" && { printf '%b' "$inner" && cat; } | sha256sum | head -c 64 | bytes; } | sha256sum | head -c 64
}

# Whether one of the secrets has signed the body, at most five minutes ago.
is_signed() { # ID TIMESTAMP SIGNATURES BODY_FILE
  local secret key expected signature age secrets given
  [[ $2 =~ ^[1-9][0-9]{0,11}$ ]] || return 1
  age=$(($(date +%s) - $2))
  ((age <= 300 && age >= -300)) || return 1
  read -ra secrets <<<"$WEBHOOK_SECRET"
  read -ra given <<<"$3"
  for secret in "${secrets[@]}"; do
    key=$(base64 -d <<<"${secret#whsec_}" | od -An -v -tx1 | tr -d ' \n')
    expected=v1,$({ printf '%s.%s.' "$1" "$2" && cat "$4"; } | hmac "$key" | bytes | base64)
    for signature in "${given[@]}"; do
      if [ "$(sha256sum <<<"$signature")" = "$(sha256sum <<<"$expected")" ]; then return 0; fi
    done
  done
  return 1
}

answer() { # STATUS FIELD VALUE
  local body="{\"$2\":\"$3\"}"
  printf 'HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %s\r\nconnection: close\r\n\r\n%s' \
    "$1" "${#body}" "$body"
}

# Says the highest attempt that was here. The run is on the disk when this ends, however often it comes.
note() { # RUN_ID ATTEMPT BODY_FILE
  local run=$DIRECTORY/all/$1 known=0
  exec 8>"$DIRECTORY/lock"
  flock 8
  if [ -d "$run" ]; then
    known=$(cat "$run/attempt")
  else
    mkdir -p "$DIRECTORY/new/$1"
    cp "$3" "$DIRECTORY/new/$1/body"
    echo "$2" >"$DIRECTORY/new/$1/attempt"
    sync "$DIRECTORY/new/$1/"{body,attempt}
    # In this order: a run that is there without its mark would never be done.
    : >"$DIRECTORY/todo/$1"
    mv "$DIRECTORY/new/$1" "$run"
    sync "$DIRECTORY/all" "$DIRECTORY/todo"
  fi
  if (($2 > known)); then
    echo "$2" >"$run/attempt.new" && sync "$run/attempt.new" && mv "$run/attempt.new" "$run/attempt"
    known=$2
  fi
  exec 8>&-
  echo "$known"
}

# One request on stdin, its answer on stdout.
receive() {
  local name value length="" id="" timestamp="" signatures="" start attempt highest
  read -r -t 60 start
  while read -r -t 60 name value && [ -n "${name%$'\r'}" ]; do
    value=${value%$'\r'}
    case ${name,,} in
    content-length:) length=$value ;;
    webhook-id:) id=$value ;;
    webhook-timestamp:) timestamp=$value ;;
    webhook-signature:) signatures=$value ;;
    esac
  done
  if ! [[ $length =~ ^(0|[1-9][0-9]{0,8})$ ]] || ((length > most_bytes)); then
    answer '413 Content Too Large' error 'the body is too large, or has no length'
    return
  fi
  body=$(mktemp "$DIRECTORY/body.XXXXXX")
  trap 'rm -f "$body"' EXIT
  timeout 60 head -c "$length" >"$body"
  if ! is_signed "$id" "$timestamp" "$signatures" "$body"; then
    answer '401 Unauthorized' error 'the signature is not right'
    return
  fi
  # firelock writes its fields in this order, before the payload, which is the user's.
  start='^\{"runId":"([0-9a-f-]{36})","runName":[^,]*,"scheduleId":[^,]*,"scheduledFor":"[^"]*","trigger":"[a-zA-Z]*","attempt":([0-9]{1,9}),'
  if ! [[ $(head -c 2000 "$body" | tr -d '\0') =~ $start ]]; then
    answer '400 Bad Request' error 'the body is no run of firelock'
    return
  fi
  id=${BASH_REMATCH[1]}
  attempt=${BASH_REMATCH[2]}
  highest=$(note "$id" "$attempt" "$body")
  if ((attempt < highest)); then
    answer '409 Conflict' error "attempt $highest was here"
  else
    answer '202 Accepted' executionId "job-$id"
  fi
}

# Runs COMMAND for each run that is not done, one at a time over all connections.
work() { # COMMAND [ARGUMENT...]
  local mark id
  exec 9>"$DIRECTORY/work.lock"
  flock 9
  for mark in "$DIRECTORY"/todo/*; do
    id=${mark##*/}
    [ -d "$DIRECTORY/all/$id" ] || continue
    # The command need not know the secret.
    if RUN_ID=$id env -u WEBHOOK_SECRET "$@" <"$DIRECTORY/all/$id/body"; then rm "$mark"; else echo "$id: again later"; fi
  done
}

if [ "${1:-}" = --connection ]; then
  receive
  # In a session of its own: socat ends what it has started when the connection ends.
  setsid "$0" --work </dev/null >&2 &
elif [ "${1:-}" = --work ]; then
  # Its words are quoted.
  eval "work $COMMAND"
elif [ $# -eq 0 ] || [ -z "${WEBHOOK_SECRET:-}" ]; then
  echo "usage: WEBHOOK_SECRET=whsec_... $0 COMMAND [ARGUMENT...]" >&2
  exit 2
else
  mkdir -p "$DIRECTORY"/{all,todo,new}
  # Longer than firelock keeps runs (FIRELOCK_RETENTION_DAYS): so long may a run be sent again.
  find "$DIRECTORY/all" -mindepth 1 -maxdepth 1 -mtime +32 | while read -r run; do
    [ -e "$DIRECTORY/todo/${run##*/}" ] || rm -r "$run"
  done
  # What was noted before a restart.
  work "$@"
  exec 9>&-
  COMMAND=$(printf '%q ' "$@")
  export COMMAND WEBHOOK_SECRET
  echo "receiver listens on http://127.0.0.1:${PORT:-9000}"
  exec socat "TCP-LISTEN:${PORT:-9000},bind=127.0.0.1,reuseaddr,fork,max-children=50" "EXEC:$0 --connection"
fi
