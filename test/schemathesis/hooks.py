"""What no pattern says: texts of the formats that the document names."""

import base64
import datetime

import schemathesis
from hypothesis import strategies as st

CRON = st.builds(
    lambda minute, hour, day: f"{minute} {hour} {day} * *",
    st.sampled_from(["0", "*/5", "H", "7,37"]),
    st.sampled_from(["*", "2", "9-17", "H(0-5)"]),
    st.sampled_from(["*", "L", "1-7"]),
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Chatham"])
DAYS = st.dates(datetime.date(2000, 1, 1), datetime.date(2099, 12, 31))
INSTANTS = st.datetimes(datetime.datetime(2000, 1, 2), datetime.datetime(2099, 12, 30))


def entry(first, days):
    if days is None:
        return first.isoformat()
    last = min(first + datetime.timedelta(days=days), datetime.date(2099, 12, 31))
    return f"{first.isoformat()}/{last.isoformat()}"


def instant(at, offset):
    return f"{at.isoformat(timespec='milliseconds')}{offset}"


@schemathesis.hook
def before_call(context, case, kwargs):
    """A worker may wait for work for a minute. Nobody here has so much time."""
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("waitSeconds"), (int, float)) and 0 <= body["waitSeconds"] <= 60:
        body["waitSeconds"] = 0


FORMATS = {
    "cron": CRON,
    "time-zone": ZONES,
    "date-or-range": st.builds(entry, DAYS, st.none() | st.integers(0, 400)),
    "date-time": st.builds(instant, INSTANTS, st.sampled_from(["Z", "+02:00", "-0330", "+14:00"])),
    "url-template": st.sampled_from(
        ["https://example.com/a", "http://example.com:8080/b?run={{runId}}", "https://example.com/{{scheduleId}}"]
    ),
    "body-template": st.sampled_from(['{"run": "{{runId}}"}', '[{{payload}}, {{attempt}}]', '"{{parent/status}}"']),
    "media-type": st.sampled_from(["application/json", "text/plain; charset=utf-8", "application/x-www-form-urlencoded"]),
    "http-header-name": st.from_regex(r"[Xx]-[A-Za-z0-9-]{1,20}", fullmatch=True),
    "webhook-secret": st.binary(min_size=24, max_size=64).map(lambda key: f"whsec_{base64.b64encode(key).decode()}"),
    "http-header-value": st.from_regex(r"[\x21-\x7a]{0,30}", fullmatch=True),
}
for name, strategy in FORMATS.items():
    schemathesis.openapi.format(name, strategy)
