package firelock

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// A Callback has a receiver answer at once, do the work behind that, and report its end: for schedules with
// completion: "callback".
type Callback struct {
	// Where the daemon is, with its base path if it has one, and a token of role worker.
	URL, Token string
	// Does what the run is about. What it returns is reported as JSON. A *Later has the run come again, any other error ends it
	// as failed, for good. The context is cancelled when the run was cancelled, or sent to somebody else: then nobody wants the
	// result. progress says how much is done, from 0 to 1; the next heartbeat tells it.
	Work func(ctx context.Context, run HandedRun, progress func(done float64)) (any, error)
	// A third of the schedule's completionTimeoutSeconds, so that two may be lost. 20 s unless set.
	Heartbeat time.Duration
	Client    *http.Client
}

// AnswerFirst has the receiver do the work behind its answer, in the place of its Work. It is called before it serves.
func (r *Receiver) AnswerFirst(callback Callback) error {
	calls, err := newCalls(callback.URL, callback.Token, callback.Client)
	if err == nil {
		callback.Heartbeat = or(callback.Heartbeat, 20*time.Second)
		r.jobs = &jobs{Callback: callback, receiver: r, calls: calls, underWay: map[string]*handedJob{}}
	}
	return err
}

type jobs struct {
	Callback
	receiver *Receiver
	calls    *calls

	lock     sync.Mutex
	underWay map[string]*handedJob
}

type handedJob struct {
	run HandedRun
	// The highest that has come: an older one has no say any more. Both under the lock of all jobs.
	attempt  int
	progress *float64
	ctx      context.Context
	cancel   context.CancelFunc
}

type report struct {
	Status  string          `json:"status"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	Retry   bool            `json:"retry,omitempty"`
	Attempt int             `json:"attempt"`
}

// take answers true where it will be worked on, and reported; false where another process works on it, or the work is being
// cancelled.
func (j *jobs) take(run HandedRun, verdict Verdict) bool {
	j.lock.Lock()
	defer j.lock.Unlock()
	known := j.underWay[run.RunID]
	switch {
	case known == nil && verdict.State == "busy", known != nil && known.ctx.Err() != nil:
		return false
	case known != nil:
		known.attempt = max(known.attempt, run.Attempt)
		return true
	}
	ctx, cancel := context.WithCancel(context.Background())
	job := &handedJob{run: run, attempt: run.Attempt, ctx: ctx, cancel: cancel}
	j.underWay[run.RunID] = job
	go func() {
		defer cancel()
		if err := j.lead(job, verdict); err != nil {
			j.receiver.OnError(err, run.RunID)
		}
	}()
	return true
}

func (j *jobs) lead(job *handedJob, verdict Verdict) error {
	defer j.drop(job)
	id, store := job.run.RunID, j.receiver.Store
	outcome, err := j.outcomeOf(job, verdict)
	if err != nil {
		return err
	}
	if outcome.Status == "succeeded" {
		for !j.leave(job, j.report(job, outcome)) {
		}
		return nil
	}
	reported := j.highest(job)
	if outcome.Status != "" {
		reported = j.report(job, outcome)
	}
	// In this order: what comes between is answered "busy", and not taken for a job that is under way.
	attempt := j.drop(job)
	if err := store.Release(id, attempt); err != nil || attempt == reported {
		return err
	}
	// Opened again, and taken here while the report was on its way.
	again, err := store.Begin(id, attempt)
	if err == nil && again.State == "new" {
		run := job.run
		run.Attempt = attempt
		j.take(run, again)
	}
	return err
}

// outcomeOf has the work done, unless it is done and firelock has not heard of it: then only the report is missing. Without a
// status there is nothing to report, as firelock wants no result.
func (j *jobs) outcomeOf(job *handedJob, verdict Verdict) (outcome report, err error) {
	if verdict.Reply != nil {
		return outcome, json.Unmarshal([]byte(verdict.Reply.Body), &outcome)
	}
	id := job.run.RunID
	stopBeats := every(j.Heartbeat, func() { j.beat(job) })
	result, failure := encoded(func() (any, error) { return j.Work(job.ctx, job.run, job.tell(j)) })
	stopBeats()
	if failure == nil {
		outcome = report{Status: "succeeded", Result: result}
		// Remembered before it is reported. Where that fails, it is done nevertheless.
		text, err := json.Marshal(outcome)
		if err == nil {
			err = j.receiver.Store.Finish(id, j.highest(job), Reply{202, map[string]string{}, string(text)})
		}
		if err != nil {
			j.receiver.OnError(err, id)
		}
		return outcome, nil
	}
	j.receiver.OnError(failure, id)
	if job.ctx.Err() != nil {
		return outcome, nil
	}
	var later *Later
	return report{Status: "failed", Error: failure.Error(), Retry: errors.As(failure, &later)}, nil
}

// tell is what the work says how far it is by.
func (job *handedJob) tell(j *jobs) func(float64) {
	return func(done float64) {
		j.lock.Lock()
		defer j.lock.Unlock()
		job.progress = &done
	}
}

func (j *jobs) beat(job *handedJob) {
	j.lock.Lock()
	attempt, progress := job.attempt, job.progress
	j.lock.Unlock()
	err := j.act(job, "heartbeat", struct {
		Attempt  int      `json:"attempt"`
		Progress *float64 `json:"progress,omitempty"`
	}{attempt, progress})
	if err == nil {
		return
	}
	j.receiver.OnError(err, job.run.RunID)
	j.lock.Lock()
	defer j.lock.Unlock()
	// Cancelled, ended, or sent to somebody else; unless a higher attempt has come here meanwhile.
	if isFinal(err) && job.attempt == attempt {
		job.cancel()
	}
}

// report asks until firelock takes it, or refuses it for good: a run without a report would be done again. It answers which
// attempt it was of.
func (j *jobs) report(job *handedJob, outcome report) int {
	for failures := 1; ; failures++ {
		outcome.Attempt = j.highest(job)
		err := j.act(job, "complete", outcome)
		if err == nil {
			return outcome.Attempt
		}
		j.receiver.OnError(err, job.run.RunID)
		// A higher attempt may have come while this was asked: then that one has the say.
		if isFinal(err) && j.highest(job) == outcome.Attempt {
			return outcome.Attempt
		}
		time.Sleep(untilAgain(err, failures))
	}
}

func (j *jobs) act(job *handedJob, action string, body any) error {
	return j.calls.post(context.Background(), "runs/"+job.run.RunID+"/"+action, body, nil)
}

func (j *jobs) highest(job *handedJob) int {
	j.lock.Lock()
	defer j.lock.Unlock()
	return job.attempt
}

// leave answers false where a higher attempt than that has come, and has to be reported.
func (j *jobs) leave(job *handedJob, reported int) bool {
	j.lock.Lock()
	defer j.lock.Unlock()
	if job.attempt > reported {
		return false
	}
	delete(j.underWay, job.run.RunID)
	return true
}

// drop leaves in any case; it answers the highest attempt that has come.
func (j *jobs) drop(job *handedJob) int {
	j.lock.Lock()
	defer j.lock.Unlock()
	if j.underWay[job.run.RunID] == job {
		delete(j.underWay, job.run.RunID)
	}
	return job.attempt
}
