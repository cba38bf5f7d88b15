package firelock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const mostOfBody = 16 << 20

// A HandedRun is a run as firelock hands it over. RunID is the same in each attempt, Attempt is higher in each.
type HandedRun struct {
	RunID        string          `json:"runId"`
	RunName      *string         `json:"runName"`
	ScheduleID   *string         `json:"scheduleId"`
	ScheduledFor time.Time       `json:"scheduledFor"`
	Trigger      string          `json:"trigger"`
	Attempt      int             `json:"attempt"`
	Dependencies json.RawMessage `json:"dependencies"`
	Payload      json.RawMessage `json:"payload"`
}

// ReceiverWork does what the run is about. What it returns is answered as JSON. A *Refused ends the run as failed, a *Later
// has it come again after that time, any other error has it come again.
type ReceiverWork func(run HandedRun) (any, error)

// A Receiver takes runs that firelock sends: it verifies, remembers, has the work of each run done once, and answers.
type Receiver struct {
	// Nil: nothing is verified, and everybody can start work.
	Verifier *Verifier
	Work     ReceiverWork
	// Memory unless set, which a restart empties.
	Store Store
	// Is told of what went wrong in the work or the store. Writes to the standard logger unless set.
	OnError func(err error, runID string)

	// Nil: the work is done before the answer.
	jobs     *jobs
	lock     sync.Mutex
	underWay map[string]*answering
}

type answering struct {
	ended chan struct{}
	reply Reply
}

// NewReceiver takes the secrets of the target. Its fields may be changed before it serves.
func NewReceiver(work ReceiverWork, secrets ...string) (*Receiver, error) {
	verifier, err := NewVerifier(secrets...)
	if err != nil {
		return nil, err
	}
	return &Receiver{Verifier: verifier, Work: work, Store: NewMemoryStore(), OnError: writeError}, nil
}

func (r *Receiver) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	reply := r.answer(response, request)
	for name, value := range reply.Headers {
		response.Header().Set(name, value)
	}
	response.WriteHeader(reply.Status)
	io.WriteString(response, reply.Body)
}

func (r *Receiver) answer(response http.ResponseWriter, request *http.Request) Reply {
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		return failure(405, "a run comes by POST", "allow", "POST")
	}
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, mostOfBody))
	if err != nil {
		return failure(413, "the body is too large")
	}
	if r.Verifier != nil {
		if err := r.Verifier.Verify(request.Header, body); err != nil {
			return failure(401, err.Error())
		}
	}
	var run HandedRun
	if json.Unmarshal(body, &run) != nil || run.RunID == "" || run.Attempt < 1 || run.Payload == nil {
		return failure(400, "the body is no run of firelock")
	}
	// A lookup or a cancellation is signed as well.
	if run.RunID != request.Header.Get("webhook-id") {
		return failure(400, "webhook-id is not the run of the body")
	}
	reply, err := r.take(run)
	if err != nil {
		// The store is away, most likely: firelock is to try again.
		r.OnError(err, run.RunID)
		return failure(503, "the receiver cannot take it now", "retry-after", "5")
	}
	return reply
}

func (r *Receiver) take(run HandedRun) (Reply, error) {
	verdict, err := r.Store.Begin(run.RunID, run.Attempt)
	if err != nil {
		return Reply{}, err
	}
	if verdict.State == "stale" {
		return failure(409, fmt.Sprintf("attempt %d is older than attempt %d, which was here", run.Attempt, verdict.Seen)), nil
	}
	if r.jobs != nil {
		if r.jobs.take(run, verdict) {
			return answered(202, []byte("{}")), nil
		}
		return busy(), nil
	}
	switch verdict.State {
	case "done":
		return *verdict.Reply, nil
	case "busy":
		r.lock.Lock()
		other := r.underWay[run.RunID]
		r.lock.Unlock()
		if other == nil {
			return busy(), nil
		}
		<-other.ended
		return other.reply, nil
	}
	own := &answering{ended: make(chan struct{}), reply: failure(503, "the receiver cannot take it now")}
	r.lock.Lock()
	if r.underWay == nil {
		r.underWay = map[string]*answering{}
	}
	r.underWay[run.RunID] = own
	r.lock.Unlock()
	defer func() {
		r.lock.Lock()
		if r.underWay[run.RunID] == own {
			delete(r.underWay, run.RunID)
		}
		r.lock.Unlock()
		close(own.ended)
	}()
	own.reply, err = r.do(run)
	return own.reply, err
}

func (r *Receiver) do(run HandedRun) (Reply, error) {
	text, err := encoded(func() (any, error) {
		result, err := r.Work(run)
		if result == nil {
			result = struct{}{}
		}
		return result, err
	})
	if err != nil {
		r.OnError(err, run.RunID)
		return failed(err), r.Store.Release(run.RunID, run.Attempt)
	}
	reply := answered(200, text)
	// It is done: any answer but 2xx would have it done again.
	if err := r.Store.Finish(run.RunID, run.Attempt, reply); err != nil {
		r.OnError(err, run.RunID)
	}
	return reply, nil
}

func answered(status int, text []byte) Reply {
	return Reply{status, map[string]string{"content-type": "application/json"}, string(text)}
}

func busy() Reply {
	return failure(503, "another process is working on the run", "retry-after", "5")
}

func failed(err error) Reply {
	var refused *Refused
	var later *Later
	switch {
	case errors.As(err, &refused):
		return failure(422, err.Error())
	case errors.As(err, &later):
		return failure(503, err.Error(), "retry-after", strconv.Itoa(int(math.Ceil(later.After.Seconds()))))
	}
	return failure(500, err.Error())
}

func failure(status int, message string, header ...string) Reply {
	headers := map[string]string{"content-type": "application/json"}
	if len(header) == 2 {
		headers[header[0]] = header[1]
	}
	text, _ := json.Marshal(map[string]string{"error": message})
	return Reply{status, headers, string(text)}
}
