#!/bin/sh
# Has relay.mjs called for every run that did not end well, of any schedule.
#
# FIRELOCK_URL: the daemon (http://127.0.0.1:8080); RELAY_URL: relay.mjs (http://127.0.0.1:9000).
# FIRELOCK_TOKEN: of role admin, if the daemon asks for one.
#
# "*" follows every schedule that is not itself an `after` schedule. This one is: a message that cannot be delivered is not
# followed by another message, so it cannot feed itself, and neither can two such schedules feed each other. (What becomes of
# the messages: GET /api/v1/schedules/notify-chat/runs?status=failed.) One-off runs belong to no schedule: they are not
# followed.
set -eu
firelock=${FIRELOCK_URL:-http://127.0.0.1:8080}
relay=${RELAY_URL:-http://127.0.0.1:9000}

curl -sS --fail-with-body ${FIRELOCK_TOKEN:+-H "authorization: Bearer $FIRELOCK_TOKEN"} \
  -X PUT "$firelock/api/v1/schedules/notify-chat" -H 'content-type: application/json' -d '{
  "after": {"scheduleId": "*", "on": ["failed", "unknown", "abandoned"]},
  "target": {"type": "http", "url": "'"$relay"'/"},
  "timeoutSeconds": 30,
  "retry": {"maxAttempts": 20, "minBackoffSeconds": 5, "maxBackoffSeconds": 1800}
}'
echo
