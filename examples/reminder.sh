#!/bin/sh
# One thing, once, at its moment: TEXT is handed to a URL at WHEN, however often this is called for it.
#
#   ./reminder.sh 2026-11-20T09:00:00+01:00 invoice-4711 'Invoice 4711 is due' http://127.0.0.1:9000/remind
#
# FIRELOCK_URL: the daemon; http://127.0.0.1:8080 unless set. FIRELOCK_TOKEN: of role operator, if it asks for one.
set -eu

if [ $# -ne 4 ]; then
  echo "usage: $0 WHEN KEY TEXT TARGET_URL" >&2
  exit 2
fi
firelock=${FIRELOCK_URL:-http://127.0.0.1:8080}

# Text as a JSON string. Control characters would each need an escape of their own: they become blanks.
quoted() {
  printf '"%s"' "$(printf '%s' "$1" | tr '\001-\037\177' ' ' | sed 's/[\\"]/\\&/g')"
}

# The key says what the reminder is about, and WHEN comes from there too. Taken from the clock or at random, either would
# be another one with each call, and each call would make another reminder. The same key with another body is refused
# (422): to move a reminder, cancel its run and use another key.
body=$(printf '{"runAt": %s, "key": %s, "payload": {"text": %s}, "target": {"type": "http", "url": %s}}' \
  "$(quoted "$1")" "$(quoted "$2")" "$(quoted "$3")" "$(quoted "$4")")

# Twice here, as by a script that was cut off before it had its answer: made (201), then found again (200).
for time in first second; do
  answer=$(printf '%s' "$body" | curl -sS --max-time 30 --write-out '\n%{http_code}' \
    ${FIRELOCK_TOKEN:+-H "authorization: Bearer $FIRELOCK_TOKEN"} \
    -H 'content-type: application/json' --data-binary @- "$firelock/api/v1/runs")
  # The id comes first in the answer; the status is what curl wrote in a line of its own.
  run=$(printf '%s\n' "$answer" | sed -n 's/^{"id":"\([^"]*\)".*/\1/p')
  if [ -z "$run" ]; then
    printf '%s\n' "$answer" >&2
    exit 1
  fi
  printf '%s call: %s, run %s\n' "$time" "$(printf '%s\n' "$answer" | tail -n 1)" "$run"
done

token=${FIRELOCK_TOKEN:+'-H "authorization: Bearer $FIRELOCK_TOKEN" '}
echo "look at it:     curl $token$firelock/api/v1/runs/$run"
echo "not after all:  curl $token-X POST $firelock/api/v1/runs/$run/cancel"
