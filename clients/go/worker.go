package firelock

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	mostPerClaim = 100
	logTries     = 3
	mostOfError  = 4096
)

// A Run is leased to this worker. Attempts is the number of this attempt.
type Run struct {
	ID           string          `json:"id"`
	ScheduleID   *string         `json:"scheduleId"`
	ScheduledFor time.Time       `json:"scheduledFor"`
	Attempts     int             `json:"attempts"`
	Payload      json.RawMessage `json:"payload"`
	// The whole run, as the API documents it.
	Raw json.RawMessage `json:"-"`
}

// A Handler does what the run is about. What it returns goes to firelock as JSON; a *Refused, alone or wrapped, ends the run
// as failed, for good, and after any other error it is tried again. The context is cancelled when the run was cancelled, or
// is not this worker's any more: then nobody wants the result.
type Handler func(ctx context.Context, run Run, job *Job) (any, error)

// WorkerOptions: all but URL may be left out.
type WorkerOptions struct {
	// Where the daemon is, with its base path if it has one.
	URL   string
	Token string
	// The same in each call, and no other worker's. Made of random letters unless set.
	WorkerID string
	// So many runs are worked on at once (1), so many more are claimed ahead (0).
	Concurrency, Prefetch int
	// A minute; heartbeats come at a third of it.
	Lease time.Duration
	// How long a claim waits for work (20 s), and how often the log is sent (1 s).
	Wait, LogEvery time.Duration
	// Which errors of the handler end the run for good; *Refused unless set.
	IsRefusal func(error) bool
	// Is told of what went wrong in the work or a call; of a claim with an empty id. Writes to the standard logger unless set.
	OnError func(err error, runID string)
	Client  *http.Client
}

// A Job is what the handler has to do with its run. It is safe for several goroutines.
type Job struct {
	log  *runLog
	send func()

	lock     sync.Mutex
	progress *float64
}

// Write appends to the run's log; it never fails.
func (j *Job) Write(text []byte) (int, error) {
	if j.log.write(text) {
		j.send()
	}
	return len(text), nil
}

// Progress says how much is done, from 0 to 1; the next heartbeat tells it.
func (j *Job) Progress(done float64) {
	j.lock.Lock()
	defer j.lock.Unlock()
	j.progress = &done
}

// Work claims runs of a queue and has the handler work on each, until the context is done: then it claims no more, releases
// what has not begun, and returns when the rest is done and reported. It returns a *Problem where the daemon refuses the
// worker, for its token for example.
func Work(ctx context.Context, queue string, handler Handler, options WorkerOptions) error {
	calls, err := newCalls(options.URL, options.Token, options.Client)
	if err != nil {
		return err
	}
	w := &worker{WorkerOptions: withDefaults(options), calls: calls, handler: handler, stop: ctx, led: map[string]*led{}}
	w.slots = make(chan struct{}, w.Concurrency)
	w.held = make(chan struct{}, w.Concurrency+w.Prefetch)
	defer w.all.Wait()
	return w.claimUntilStopped("queues/" + url.PathEscape(queue) + "/claim")
}

func withDefaults(o WorkerOptions) WorkerOptions {
	if o.WorkerID == "" {
		letters := make([]byte, 16)
		rand.Read(letters)
		o.WorkerID = fmt.Sprintf("worker-%x", letters)
	}
	o.Concurrency = max(o.Concurrency, 1)
	o.Lease, o.Wait, o.LogEvery = or(o.Lease, time.Minute), or(o.Wait, 20*time.Second), or(o.LogEvery, time.Second)
	if o.IsRefusal == nil {
		o.IsRefusal = func(err error) bool { var refused *Refused; return errors.As(err, &refused) }
	}
	if o.OnError == nil {
		o.OnError = writeError
	}
	return o
}

func writeError(err error, runID string) { log.Printf("firelock: run %s: %v", runID, err) }

type worker struct {
	WorkerOptions
	calls   *calls
	handler Handler
	// Done: what has not begun is released.
	stop context.Context
	// One place for each run that is being worked on, and for each that is claimed.
	slots, held chan struct{}
	all         sync.WaitGroup

	lock sync.Mutex
	led  map[string]*led
}

// led is a run that is led here.
type led struct {
	lose  context.CancelFunc
	ended chan struct{}
}

func (w *worker) claimUntilStopped(path string) error {
	for failures := 0; ; {
		room := w.takeRoom()
		if room == 0 {
			return nil
		}
		claim := map[string]any{
			"workerId": w.WorkerID, "max": room, "leaseSeconds": w.Lease.Seconds(), "waitSeconds": w.Wait.Seconds(),
		}
		var answer struct{ Items []json.RawMessage }
		// If this hangs up, the daemon takes back what it has claimed meanwhile.
		err := w.calls.post(w.stop, path, claim, &answer)
		for _, item := range answer.Items {
			w.begin(item)
		}
		for i := len(answer.Items); i < room; i++ {
			<-w.held
		}
		if err == nil {
			failures = 0
			continue
		}
		if w.stop.Err() != nil {
			return nil
		}
		var problem *Problem
		if errors.As(err, &problem) && !problem.MayPass() {
			return err
		}
		w.OnError(err, "")
		failures++
		select {
		case <-time.After(untilAgain(err, failures)):
		case <-w.stop.Done():
		}
	}
}

// takeRoom waits until a run may be claimed, and says how many more may; 0: the worker is to stop.
func (w *worker) takeRoom() int {
	select {
	case w.held <- struct{}{}:
	case <-w.stop.Done():
	}
	if w.stop.Err() != nil {
		return 0
	}
	for room := 1; room < mostPerClaim; room++ {
		select {
		case w.held <- struct{}{}:
		default:
			return room
		}
	}
	return mostPerClaim
}

// begin: a run that comes again was lost here. The new attempt begins when the old one has heeded that.
func (w *worker) begin(item json.RawMessage) {
	run := Run{Raw: item}
	if err := json.Unmarshal(item, &run); err != nil {
		w.OnError(err, "")
		<-w.held
		return
	}
	ctx, lose := context.WithCancel(context.Background())
	own := &led{lose: lose, ended: make(chan struct{})}
	w.lock.Lock()
	older := w.led[run.ID]
	w.led[run.ID] = own
	w.lock.Unlock()
	w.all.Add(1)
	// Here, so that what was claimed first begins first.
	hasSlot := false
	select {
	case w.slots <- struct{}{}:
		hasSlot = true
	default:
	}
	go func() {
		defer w.all.Done()
		if older != nil {
			older.lose()
			<-older.ended
		}
		w.lead(ctx, lose, run, hasSlot)
		w.lock.Lock()
		if w.led[run.ID] == own {
			delete(w.led, run.ID)
		}
		w.lock.Unlock()
		close(own.ended)
		lose()
		<-w.held
	}()
}

type speaker struct {
	Attempt  int    `json:"attempt"`
	WorkerID string `json:"workerId"`
}

// lead leads a claimed run to its end: keeps the lease, has the work done, sends the log, reports.
func (w *worker) lead(ctx context.Context, lose context.CancelFunc, run Run, hasSlot bool) {
	said := speaker{run.Attempts, w.WorkerID}
	job := &Job{log: &runLog{append: func(offset int64, part []byte) error {
		query := fmt.Sprintf("log?attempt=%d&offset=%d&workerId=%s", said.Attempt, offset, url.QueryEscape(said.WorkerID))
		return w.act(run, query, part)
	}}}
	flush := func(tries int) {
		err := untilTaken(job.log.flush, func(err error) { w.OnError(err, run.ID) }, tries)
		if err != nil {
			w.OnError(err, run.ID)
		}
		if hasStatus(err, http.StatusConflict) {
			lose()
		}
	}
	job.send = func() { flush(1) }
	defer every(w.Lease/3, func() { w.beat(run, said, job, lose) })()
	if !hasSlot {
		hasSlot = w.waitForSlot(ctx)
	}
	if hasSlot {
		defer func() { <-w.slots }()
	}
	if !hasSlot || w.stop.Err() != nil || ctx.Err() != nil {
		if ctx.Err() == nil {
			if err := w.act(run, "release", said); err != nil {
				w.OnError(err, run.ID)
			}
		}
		return
	}
	stopFlushes := every(w.LogEvery, job.send)
	outcome := w.outcomeOf(ctx, run, job)
	stopFlushes()
	if ctx.Err() == nil {
		flush(logTries)
	}
	if ctx.Err() == nil {
		w.report(run, said, outcome)
	}
}

// waitForSlot answers false where the run is not to begin: it was lost, or the worker is to stop.
func (w *worker) waitForSlot(lost context.Context) bool {
	select {
	case w.slots <- struct{}{}:
		return true
	case <-w.stop.Done():
	case <-lost.Done():
	}
	return false
}

func (w *worker) outcomeOf(ctx context.Context, run Run, job *Job) map[string]any {
	result, err := encoded(func() (any, error) { return w.handler(ctx, run, job) })
	if err == nil {
		return map[string]any{"status": "succeeded", "result": result}
	}
	w.OnError(err, run.ID)
	message := err.Error()
	outcome := map[string]any{"status": "failed", "error": message[:min(len(message), mostOfError)]}
	if !w.IsRefusal(err) {
		outcome["retry"] = true
	}
	return outcome
}

// report asks until an instance takes it, also while stopping: a run without a report is done again.
func (w *worker) report(run Run, said speaker, outcome map[string]any) {
	outcome["attempt"], outcome["workerId"] = said.Attempt, said.WorkerID
	err := untilTaken(
		func() error { return w.act(run, "complete", outcome) },
		func(err error) { w.OnError(err, run.ID) }, 0)
	if err == nil {
		return
	}
	w.OnError(err, run.ID)
	// A result that is too long, for example: without this the run would come again, and end the same.
	if outcome["status"] == "succeeded" && !hasStatus(err, http.StatusNotFound, http.StatusConflict) {
		w.report(run, said, map[string]any{"status": "failed", "error": err.Error()})
	}
}

func (w *worker) beat(run Run, said speaker, job *Job, lose context.CancelFunc) {
	job.lock.Lock()
	progress := job.progress
	job.lock.Unlock()
	err := w.act(run, "heartbeat", struct {
		speaker
		Progress *float64 `json:"progress,omitempty"`
	}{said, progress})
	if err != nil {
		w.OnError(err, run.ID)
	}
	// Else the daemon is away: whether the lease was lost meanwhile is said when it is back.
	if isFinal(err) {
		lose()
	}
}

func (w *worker) act(run Run, action string, body any) error {
	return w.calls.post(context.Background(), "runs/"+run.ID+"/"+action, body, nil)
}

// every calls now and then, never twice at once; it answers what ends that.
func every(interval time.Duration, action func()) func() {
	ticker, ended := time.NewTicker(interval), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				action()
			case <-ended:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(ended) }
}
