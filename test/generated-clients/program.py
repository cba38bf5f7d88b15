"""What a program does with a client that a generator made from the OpenAPI document: it previews, makes, fires and lists.
It ends with an error at the first answer that is not what it should be, else it writes the id of its run."""

import datetime
import importlib
import os
import pkgutil
import time

from firelock_client import api
from firelock_client.api import AuthenticatedClient, models
from firelock_client.api.api.fire_times import preview_fires
from firelock_client.api.api.runs import get_run, list_runs
from firelock_client.api.api.schedules import (
    act_on_schedules,
    delete_schedule,
    fire_schedule,
    get_schedule,
    put_schedule,
)

ID = "from-python"
CLIENT = AuthenticatedClient(
    base_url=os.environ["FIRELOCK_URL"], token=os.environ["FIRELOCK_TOKEN"], raise_on_unexpected_status=True
)


def import_everything():
    for module in pkgutil.walk_packages(api.__path__, "firelock_client.api."):
        importlib.import_module(module.name)


def preview():
    answer = preview_fires.sync(client=CLIENT, body=models.PreviewInput(every_seconds=900, count=3))
    assert isinstance(answer, models.Preview) and len(answer.items) == 3, answer


def make_schedule():
    labels = models.ScheduleInputLabels()
    labels["team"] = "billing"
    schedule = models.ScheduleInput(
        cron=["0 9 * * MON-FRI", "0 11 * * SAT"],
        timezone="Europe/Berlin",
        target=models.HttpTargetInput(
            type_="http",
            url=os.environ["TARGET_URL"],
            outcome=models.OutcomeRulesInput(otherwise=models.OutcomeRulesInputOtherwiseType0.FAIL),
        ),
        payload={"report": "daily"},
        labels=labels,
        retry=models.RetryInput(max_attempts=2),
    )
    schedule.every_seconds = 60
    refused = put_schedule.sync(ID, client=CLIENT, body=schedule)
    assert isinstance(refused, models.Problem) and len(refused.errors) == 2, refused
    schedule.every_seconds = None

    made = put_schedule.sync(ID, client=CLIENT, body=schedule, if_none_match="*")
    assert isinstance(made, models.Schedule) and made.status == models.ScheduleStatus.ACTIVE, made
    assert isinstance(made.target, models.AnsweredHttpTarget) and len(made.cron) == 2, made
    assert made.next_fire_at > datetime.datetime.now(datetime.timezone.utc), made


def fire():
    first = fire_schedule.sync_detailed(ID, client=CLIENT, idempotency_key="once", body=models.FireInput())
    assert first.status_code == 202 and first.parsed.trigger == models.RunTrigger.MANUAL, first
    again = fire_schedule.sync_detailed(ID, client=CLIENT, idempotency_key="once", body=models.FireInput())
    assert again.status_code == 200 and again.parsed.id == first.parsed.id, again
    return first.parsed.id


def find(run):
    deadline = time.monotonic() + 120
    while True:
        page = list_runs.sync(client=CLIENT, schedule_id=ID, status="succeeded", label=["team:billing"])
        assert isinstance(page, models.RunPage) and time.monotonic() < deadline, page
        if page.items:
            break
        time.sleep(0.1)
    assert [(one.id, one.status) for one in page.items] == [(run, models.RunStatus.SUCCEEDED)], page

    whole = get_run.sync(run, client=CLIENT)
    assert isinstance(whole, models.WholeRun) and [one.status_code for one in whole.attempt_log] == [200], whole
    assert whole.target.url == os.environ["TARGET_URL"], whole


def pause_by_filter():
    answer = act_on_schedules.sync(
        client=CLIENT,
        body=models.ScheduleBulkInput(
            action=models.ScheduleBulkInputAction.PAUSE,
            filter_=models.ScheduleFilterInput(q=ID, status=[models.ScheduleStatus.ACTIVE]),
            dry_run=True,
        ),
    )
    assert isinstance(answer, models.ScheduleBulkResult) and answer.matched == 1, answer


def remove():
    assert delete_schedule.sync_detailed(ID, client=CLIENT).status_code == 204
    gone = get_schedule.sync(ID, client=CLIENT)
    assert isinstance(gone, models.Problem) and gone.status == 404, gone


import_everything()
preview()
make_schedule()
RUN = fire()
find(RUN)
pause_by_filter()
remove()
print(RUN)
