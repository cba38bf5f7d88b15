package firelock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// What a vector says that the work does: ../README.md has the list.
type action struct {
	Log      *string
	Times    int
	Progress *float64
	Until    int
	Wait     string
	Stop     bool
	Later    float64
	Message  string
	Refuse   string
	Fail     string
	Return   any
}

type request struct {
	Method  string
	Headers map[string]string
	Body    string
}

type script struct {
	Name    string
	Options struct {
		Concurrency, Prefetch    int
		LeaseSeconds, LogSeconds float64
	}
	HeartbeatSeconds float64
	Steps            []step
	Ends             string
}

type step struct {
	Path                                string
	Query                               map[string]string
	Body                                any
	Text                                *string
	Times                               int
	Answer                              json.RawMessage
	Stop, MayRepeat, Together, Optional bool

	// Of what a receiver gets.
	Restart    bool
	Request    string
	Do         []action
	Status     int
	Worked     *int
	RetryAfter string
}

var vectors = func() (read struct {
	Now        int64
	Secrets    []string
	Signatures []struct {
		request
		Name    string
		IsRight bool
		Secrets []string
	}
	BadSecrets           []string
	Requests             map[string]request
	Receivers, Callbacks []script
	Workers              []script
}) {
	text, err := os.ReadFile(filepath.Join("..", "vectors.json"))
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		panic(err)
	}
	return read
}()

func now() time.Time { return time.Unix(vectors.Now, 0) }

func ignore(error, string) {}

type acting struct {
	log      io.Writer
	progress func(float64)
	play     *play
}

// act does what a vector says that the work does.
func act(ctx context.Context, actions []action, with acting) (any, error) {
	for _, do := range actions {
		switch {
		case do.Log != nil:
			io.WriteString(with.log, strings.Repeat(*do.Log, max(do.Times, 1)))
		case do.Progress != nil:
			with.progress(*do.Progress)
		case do.Until > 0:
			with.play.wait(do.Until)
		case do.Wait != "":
			<-ctx.Done()
		case do.Stop:
			with.play.stop()
		case do.Later > 0:
			return nil, &Later{time.Duration(do.Later) * time.Second, do.Message}
		case do.Refuse != "":
			return nil, fmt.Errorf("%w", &Refused{do.Refuse})
		case do.Fail != "":
			return nil, errors.New(do.Fail)
		default:
			return do.Return, nil
		}
	}
	return nil, nil
}

func (r request) sent() *http.Request {
	sent := httptest.NewRequest(r.Method, "/", strings.NewReader(r.Body))
	for name, value := range r.Headers {
		sent.Header.Set(name, value)
	}
	return sent
}

func TestSignatures(t *testing.T) {
	for _, vector := range vectors.Signatures {
		verifier, err := NewVerifier(vector.Secrets...)
		if err != nil {
			t.Fatal(err)
		}
		verifier.Now = now
		vector.Method = http.MethodPost
		err = verifier.Verify(vector.sent().Header, []byte(vector.Body))
		if (err == nil) != vector.IsRight || (err != nil && !errors.Is(err, ErrSignature)) {
			t.Errorf("%s: %v", vector.Name, err)
		}
	}
	for _, secret := range vectors.BadSecrets {
		if _, err := NewVerifier(secret); err == nil {
			t.Errorf("%q is no secret", secret)
		}
	}
}

func TestReceivers(t *testing.T) {
	for _, vector := range vectors.Receivers {
		vector := vector
		t.Run(vector.Name, func(t *testing.T) { receive(t, vector.Steps, nil, nil) })
	}
}

func TestReceiversThatAnswerFirst(t *testing.T) {
	for _, vector := range vectors.Callbacks {
		vector := vector
		t.Run(vector.Name, func(t *testing.T) {
			p := &play{stop: func() {}}
			for _, one := range vector.Steps {
				if one.Path != "" {
					p.left = append(p.left, one)
				}
			}
			p.changed = sync.NewCond(&p.lock)
			server := httptest.NewServer(p)
			defer server.Close()
			heartbeat := time.Duration(or(vector.HeartbeatSeconds, 3600) * float64(time.Second))
			receive(t, vector.Steps, p, &Callback{URL: server.URL + "/cron", Token: "secret", Heartbeat: heartbeat})
			p.lock.Lock()
			defer p.lock.Unlock()
			if len(p.faults) > 0 || len(p.left) > 0 {
				t.Errorf("faults %v, left %+v", p.faults, p.left)
			}
		})
	}
}

// receive hands over what the steps say. With a callback the receiver answers first, and the play waits for its calls.
func receive(t *testing.T, steps []step, p *play, callback *Callback) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	var worked, made int32
	// Read by work that may go on beside the test.
	var actions atomic.Pointer[[]action]
	open := func() *Receiver {
		receiver, err := NewReceiver(func(HandedRun) (any, error) {
			atomic.AddInt32(&worked, 1)
			return act(context.Background(), *actions.Load(), acting{})
		}, vectors.Secrets...)
		if err != nil {
			t.Fatal(err)
		}
		store, err := OpenFileStore(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		receiver.Store, receiver.OnError, receiver.Verifier.Now = store, ignore, now
		if callback != nil {
			callback.Work = func(ctx context.Context, _ HandedRun, progress func(float64)) (any, error) {
				atomic.AddInt32(&worked, 1)
				return act(ctx, *actions.Load(), acting{nil, progress, p})
			}
			if err := receiver.AnswerFirst(*callback); err != nil {
				t.Fatal(err)
			}
		}
		return receiver
	}
	receiver := open()
	for _, step := range steps {
		switch {
		case step.Restart:
			receiver = open()
		case step.Path != "":
			made++
			p.wait(int(made))
		default:
			do := step.Do
			actions.Store(&do)
			handOver(t, receiver, step)
		}
		if done := int(atomic.LoadInt32(&worked)); step.Worked != nil && done != *step.Worked {
			t.Errorf("%s%s: worked %d times", step.Request, step.Path, done)
		}
	}
}

func handOver(t *testing.T, receiver *Receiver, step step) {
	answer := httptest.NewRecorder()
	receiver.ServeHTTP(answer, vectors.Requests[step.Request].sent())
	if answer.Code != step.Status {
		t.Errorf("%s: %d", step.Request, answer.Code)
	}
	var body any
	json.Unmarshal(answer.Body.Bytes(), &body)
	if step.Body != nil && !reflect.DeepEqual(body, step.Body) {
		t.Errorf("%s: %v", step.Request, body)
	}
	if given := answer.Header().Get("retry-after"); given != step.RetryAfter {
		t.Errorf("%s: retry-after %s", step.Request, given)
	}
}

// play serves what a script says: the worker has to ask for just that.
type play struct {
	stop    func()
	lock    sync.Mutex
	changed *sync.Cond
	left    []step
	asked   int
	last    step
	faults  []string
}

func (p *play) wait(asked int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for p.asked < asked {
		p.changed.Wait()
	}
}

func (p *play) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	raw := p.answer(request, body)
	switch string(raw) {
	case `"hold"`:
		<-request.Context().Done()
		return
	case `"close"`:
		panic(http.ErrAbortHandler)
	case `"endless"`:
		for err := error(nil); err == nil; {
			_, err = response.Write(make([]byte, 1<<20))
		}
		return
	}
	var answer struct {
		Status  int
		Headers map[string]string
		Body    json.RawMessage
	}
	json.Unmarshal(raw, &answer)
	for name, value := range answer.Headers {
		response.Header().Set(name, value)
	}
	response.WriteHeader(answer.Status)
	response.Write(answer.Body)
}

func (p *play) answer(request *http.Request, body []byte) json.RawMessage {
	p.lock.Lock()
	defer p.lock.Unlock()
	for i, one := range p.left {
		if i > 0 && !(one.Together && p.left[0].Together) {
			break
		}
		if !one.isAskedFor(request, body) {
			continue
		}
		p.left = append(append([]step(nil), p.left[:i]...), p.left[i+1:]...)
		p.last = one
		p.asked++
		p.changed.Broadcast()
		if one.Stop {
			p.stop()
		}
		return one.Answer
	}
	if p.last.MayRepeat && p.last.isAskedFor(request, body) {
		return p.last.Answer
	}
	p.faults = append(p.faults, fmt.Sprintf("%s %.200s", request.URL, body))
	p.stop()
	return json.RawMessage(`{"status": 409, "body": {}}`)
}

func (s step) isAskedFor(request *http.Request, body []byte) bool {
	query := map[string]string{}
	for name, values := range request.URL.Query() {
		query[name] = values[0]
	}
	isSame := request.URL.Path == "/cron/api/v1"+s.Path && request.Header.Get("authorization") == "Bearer secret" &&
		fmt.Sprint(query) == fmt.Sprint(s.Query)
	if s.Text != nil {
		return isSame && string(body) == strings.Repeat(*s.Text, max(s.Times, 1))
	}
	var sent any
	return isSame && json.Unmarshal(body, &sent) == nil && (s.Body == nil || reflect.DeepEqual(sent, s.Body))
}

func TestWorkers(t *testing.T) {
	for _, one := range vectors.Workers {
		one := one
		t.Run(one.Name, func(t *testing.T) {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			p := &play{stop: stop, left: one.Steps}
			p.changed = sync.NewCond(&p.lock)
			server := httptest.NewServer(p)
			defer server.Close()
			handler := func(ctx context.Context, run Run, job *Job) (any, error) {
				var payload struct{ Do []action }
				if err := json.Unmarshal(run.Payload, &payload); err != nil {
					return nil, err
				}
				return act(ctx, payload.Do, acting{job, job.Progress, p})
			}
			seconds := func(given float64) time.Duration { return time.Duration(or(given, 3600) * float64(time.Second)) }
			err := Work(ctx, "q", handler, WorkerOptions{
				URL: server.URL + "/cron", Token: "secret", WorkerID: "w", OnError: ignore,
				Concurrency: one.Options.Concurrency, Prefetch: one.Options.Prefetch,
				Lease: seconds(one.Options.LeaseSeconds), LogEvery: seconds(one.Options.LogSeconds),
			})
			ended := ""
			if err != nil {
				ended = err.Error()
			}
			for len(p.left) > 0 && p.left[0].Optional {
				p.left = p.left[1:]
			}
			if len(p.faults) > 0 || len(p.left) > 0 || ended != one.Ends {
				t.Errorf("faults %v, left %+v, ended %q", p.faults, p.left, ended)
			}
		})
	}
}
