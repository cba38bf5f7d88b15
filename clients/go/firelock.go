// Package firelock has a receiver of what firelock sends, and a worker for its queues.
package firelock

import (
	"encoding/json"
	"fmt"
	"time"
)

// Refused is an error of the work: never. The run ends as failed, without another attempt.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return r.Reason }

// Later is an error of the work of a receiver: not now. firelock tries again, at the earliest after so long.
type Later struct {
	After  time.Duration
	Reason string
}

func (l *Later) Error() string { return l.Reason }

// encoded is what the work returns, as JSON; a panic is an error.
func encoded(work func() (any, error)) (text json.RawMessage, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	value, err := work()
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// Go 1.19 has none of the three.

func min[N int | time.Duration](a, b N) N {
	if a < b {
		return a
	}
	return b
}

func max(a, b int) int { return -min(-a, -b) }

func or[T comparable](value, otherwise T) T {
	var none T
	if value == none {
		return otherwise
	}
	return value
}
