#!/bin/sh
# The schedule for receiver.mjs: a job every night that may take hours, as long as something is heard of it.
#
# FIRELOCK_URL: the daemon (http://127.0.0.1:8080); RECEIVER_URL: receiver.mjs (http://127.0.0.1:9000).
# FIRELOCK_TOKEN: of role admin, if the daemon asks for one.
set -eu
firelock=${FIRELOCK_URL:-http://127.0.0.1:8080}
receiver=${RECEIVER_URL:-http://127.0.0.1:9000}

# completionTimeoutSeconds   silence after which the run has expired; each heartbeat starts it anew
# lookup                     asked then, before the run is sent again: 404 is "not here", and "running" gives it another
#                            completionTimeoutSeconds
# cancel                     called when the run is cancelled, or replaced by the next one (overlap)
curl -sS --fail-with-body ${FIRELOCK_TOKEN:+-H "authorization: Bearer $FIRELOCK_TOKEN"} \
  -X PUT "$firelock/api/v1/schedules/nightly-job" -H 'content-type: application/json' -d '{
  "cron": "0 2 * * *",
  "completion": "callback",
  "completionTimeoutSeconds": '"${COMPLETION_TIMEOUT_SECONDS:-60}"',
  "overlap": "replace",
  "retry": {"maxAttempts": 3, "minBackoffSeconds": 1},
  "target": {
    "type": "http",
    "url": "'"$receiver"'/jobs",
    "lookup": {"url": "'"$receiver"'/jobs/{{runId}}"},
    "cancel": {"url": "'"$receiver"'/jobs/{{runId}}/cancel"}
  },
  "payload": {"steps": 10, "stepSeconds": 1}
}'
echo
echo "now, and not at night:  curl -X POST $firelock/api/v1/schedules/nightly-job/fire" >&2
