// What a program does with a client that a generator made from the OpenAPI document: it previews, makes, fires and lists.
// It ends with an error at the first answer that is not what it should be, else it writes the id of its run.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	firelock "firelock.example/clients/go/api"
)

const id = "from-go"

var ctx = context.Background()

func main() {
	client := must(firelock.NewClientWithResponses(os.Getenv("FIRELOCK_URL"), firelock.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+os.Getenv("FIRELOCK_TOKEN"))
			return nil
		})))
	preview(client)
	makeSchedule(client)
	run := fire(client)
	find(client, run)
	pauseByFilter(client)
	remove(client)
	fmt.Println(run.Id)
}

func preview(client *firelock.ClientWithResponses) {
	answer := must(client.PreviewFiresWithResponse(ctx, firelock.PreviewInput{EverySeconds: ptr(900), Count: ptr(3)}))
	expect(answer.JSON200 != nil && len(answer.JSON200.Items) == 3, "three fire times", answer.Body)
}

func makeSchedule(client *firelock.ClientWithResponses) {
	var target firelock.TargetInput
	check(target.FromHttpTargetInput(firelock.HttpTargetInput{
		Type:    firelock.HttpTargetInputTypeHttp,
		Url:     os.Getenv("TARGET_URL"),
		Outcome: &firelock.OutcomeRulesInput{Otherwise: ptr(firelock.OutcomeRulesInputOtherwise("fail"))},
	}))
	var cron firelock.ScheduleInput_Cron
	check(cron.FromScheduleInputCron1([]string{"0 9 * * MON-FRI", "0 11 * * SAT"}))
	schedule := firelock.ScheduleInput{
		Cron:     &cron,
		Timezone: ptr("Europe/Berlin"),
		Target:   &target,
		Payload:  map[string]any{"report": "daily"},
		Labels:   &map[string]string{"team": "billing"},
		Retry:    &firelock.RetryInput{MaxAttempts: ptr(2)},
	}
	both := schedule
	both.EverySeconds = ptr(60)
	refused := must(client.PutScheduleWithResponse(ctx, id, &firelock.PutScheduleParams{}, both))
	problem := refused.ApplicationproblemJSON400
	expect(problem != nil && problem.Errors != nil && len(*problem.Errors) == 2, "two faults", refused.Body)

	answer := must(client.PutScheduleWithResponse(ctx, id, &firelock.PutScheduleParams{IfNoneMatch: ptr("*")}, schedule))
	made := answer.JSON201
	expect(made != nil && made.NextFireAt != nil && made.NextFireAt.After(time.Now()), "a new schedule", answer.Body)
	expressions := must(made.Cron.AsScheduleCron1())
	expect(len(expressions) == 2 && made.Status == firelock.ScheduleStatusActive, "what was sent", answer.Body)
}

func fire(client *firelock.ClientWithResponses) *firelock.Run {
	key := &firelock.FireScheduleParams{IdempotencyKey: ptr("once")}
	first := must(client.FireScheduleWithResponse(ctx, id, key, firelock.FireInput{}))
	expect(first.JSON202 != nil && first.JSON202.Trigger == firelock.RunTriggerManual, "a new run", first.Body)
	again := must(client.FireScheduleWithResponse(ctx, id, key, firelock.FireInput{}))
	expect(again.JSON200 != nil && again.JSON200.Id == first.JSON202.Id, "the same run", again.Body)
	return first.JSON202
}

func find(client *firelock.ClientWithResponses, run *firelock.Run) {
	only := &firelock.ListRunsParams{ScheduleId: ptr(id), Status: ptr("succeeded"), Label: &[]string{"team:billing"}}
	var page *firelock.ListRunsResponse
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		page = must(client.ListRunsWithResponse(ctx, only))
		if page.JSON200 == nil || len(page.JSON200.Items) > 0 {
			break
		}
	}
	expect(page.JSON200 != nil && len(page.JSON200.Items) == 1, "one run", page.Body)
	listed := page.JSON200.Items[0]
	expect(listed.Id == run.Id && listed.Status == firelock.RunStatusSucceeded, "the run, succeeded", page.Body)

	answer := must(client.GetRunWithResponse(ctx, run.Id))
	whole := answer.JSON200
	expect(whole != nil && len(whole.AttemptLog) == 1 && *whole.AttemptLog[0].StatusCode == 200, "an attempt", answer.Body)
	target := must(whole.Target.AsAnsweredHttpTarget())
	expect(target.Url == os.Getenv("TARGET_URL"), "its target", answer.Body)
}

func pauseByFilter(client *firelock.ClientWithResponses) {
	var status firelock.ScheduleFilterInput_Status
	check(status.FromScheduleFilterInputStatus1([]firelock.ScheduleStatus{firelock.ScheduleStatusActive}))
	answer := must(client.ActOnSchedulesWithResponse(ctx, firelock.ScheduleBulkInput{
		Action: firelock.Pause,
		Filter: firelock.ScheduleFilterInput{Q: ptr(id), Status: &status},
		DryRun: ptr(true),
	}))
	expect(answer.JSON200 != nil && answer.JSON200.Matched == 1, "one to pause", answer.Body)
}

func remove(client *firelock.ClientWithResponses) {
	deleted := must(client.DeleteScheduleWithResponse(ctx, id, &firelock.DeleteScheduleParams{}))
	expect(deleted.StatusCode() == http.StatusNoContent, "no content", deleted.Body)
	gone := must(client.GetScheduleWithResponse(ctx, id))
	expect(gone.ApplicationproblemJSON404 != nil, "unknown", gone.Body)
}

func expect(holds bool, what string, body []byte) {
	if !holds {
		check(errors.New("expected " + what + ", not " + string(body)))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func ptr[T any](value T) *T {
	return &value
}
