package firelock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	mostBetween   = 30 * time.Second
	claimTimeout  = 90 * time.Second
	callTimeout   = 30 * time.Second
	mostOfProblem = 500
	// More than any answer of the API has.
	mostMiB = 64
)

// A Problem is an answer that is an error (RFC 9457), from the daemon or from a proxy before it.
type Problem struct {
	Status        int
	Title, Detail string
	// What the daemon asks for; negative where it says nothing.
	RetryAfter time.Duration
}

func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail) }

// MayPass says whether the same call may succeed later. If not, it would be refused again.
func (p *Problem) MayPass() bool { return p.Status == 408 || p.Status == 429 || p.Status >= 500 }

// isFinal: asking again is of no use. A token can be set right while the work goes on.
func isFinal(err error) bool {
	var problem *Problem
	return errors.As(err, &problem) && !problem.MayPass() && problem.Status != 401 && problem.Status != 403
}

func hasStatus(err error, statuses ...int) bool {
	var problem *Problem
	if !errors.As(err, &problem) {
		return false
	}
	for _, status := range statuses {
		if problem.Status == status {
			return true
		}
	}
	return false
}

// untilAgain is what the daemon asks for, else 1, 2, 4 … 30 s, of which half at random, so that not all workers come back
// at once.
func untilAgain(err error, failures int) time.Duration {
	var problem *Problem
	if errors.As(err, &problem) && problem.RetryAfter >= 0 {
		return min(problem.RetryAfter, mostBetween)
	}
	whole := min(time.Duration(math.Pow(2, math.Min(float64(failures-1), 10)))*time.Second, mostBetween)
	return whole/2 + time.Duration(time.Now().UnixNano())%(whole/2)
}

// untilTaken calls until that succeeds, is refused for good, or has failed so often (0: no end).
func untilTaken(call func() error, onError func(error), tries int) error {
	for failures := 1; ; failures++ {
		err := call()
		if err == nil || isFinal(err) || failures == tries {
			return err
		}
		onError(err)
		time.Sleep(untilAgain(err, failures))
	}
}

type calls struct {
	base, token string
	client      *http.Client
}

func newCalls(address, token string, client *http.Client) (*calls, error) {
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.RawQuery != "" {
		return nil, errors.New("URL is http or https, with nothing but a path behind the host")
	}
	if client == nil {
		client = http.DefaultClient
	}
	return &calls{base: strings.TrimRight(address, "/") + "/api/v1/", token: token, client: client}, nil
}

// post decodes the answer into `into`, unless that is nil.
func (c *calls) post(ctx context.Context, path string, body any, into any) error {
	limit := callTimeout
	if into != nil {
		limit = claimTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, isText := body.([]byte)
	kind := "text/plain; charset=utf-8"
	if !isText {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
		kind = "application/json"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("content-type", kind)
	if c.token != "" {
		request.Header.Set("authorization", "Bearer "+c.token)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostMiB<<20+1))
	if err != nil {
		return err
	}
	if len(answer) > mostMiB<<20 {
		return fmt.Errorf("the answer has more than %d MiB", mostMiB)
	}
	if response.StatusCode/100 != 2 {
		return problemOf(response, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

func problemOf(response *http.Response, text []byte) *Problem {
	var fields struct{ Title, Detail string }
	if json.Unmarshal(text, &fields) != nil || fields.Title == "" {
		fields.Title = http.StatusText(response.StatusCode)
		fields.Detail = string(text[:min(len(text), mostOfProblem)])
	}
	retryAfter := time.Duration(-1)
	if seconds, err := strconv.ParseUint(response.Header.Get("retry-after"), 10, 31); err == nil {
		retryAfter = time.Duration(seconds) * time.Second
	}
	return &Problem{response.StatusCode, fields.Title, fields.Detail, retryAfter}
}
