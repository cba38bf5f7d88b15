package firelock

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ErrSignature is what errors of Verify wrap: a request that is not proven to come from firelock.
var ErrSignature = errors.New("not signed by firelock")

// A Verifier verifies signatures of Standard Webhooks.
type Verifier struct {
	keys [][]byte
	// How far the time of a signature may be from now: five minutes.
	Tolerance time.Duration
	Now       func() time.Time
}

var seconds = regexp.MustCompile(`^[0-9]{1,12}$`)

// NewVerifier knows the secrets of a target: several while one takes the place of another. Its error does not tell them.
func NewVerifier(secrets ...string) (*Verifier, error) {
	v := &Verifier{Tolerance: 5 * time.Minute, Now: time.Now}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || !strings.HasPrefix(secret, "whsec_") || len(key) < 24 || len(key) > 64 {
			return nil, errors.New(`a secret is "whsec_" and base64 of 24 to 64 bytes`)
		}
		v.keys = append(v.keys, key)
	}
	if len(v.keys) == 0 {
		return nil, errors.New("there is no secret")
	}
	return v, nil
}

// Verify answers nil if a secret has signed this body, byte for byte as it arrived.
func (v *Verifier) Verify(header http.Header, body []byte) error {
	id, timestamp, given := header.Get("webhook-id"), header.Get("webhook-timestamp"), header.Get("webhook-signature")
	if id == "" || timestamp == "" || given == "" {
		return fmt.Errorf("%w: it has no signature", ErrSignature)
	}
	if !seconds.MatchString(timestamp) {
		return fmt.Errorf("%w: webhook-timestamp is no number of seconds", ErrSignature)
	}
	at, _ := strconv.ParseInt(timestamp, 10, 64)
	if off := float64(at) - float64(v.Now().UnixMilli())/1000; math.Abs(off) > v.Tolerance.Seconds() {
		return fmt.Errorf("%w: the signature is %.0f s from now", ErrSignature, off)
	}
	isRight := false
	for _, key := range v.keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, timestamp)
		mac.Write(body)
		expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		// Every pair is compared, whichever is right.
		for _, signature := range strings.Split(given, " ") {
			isRight = hmac.Equal([]byte(signature), expected) || isRight
		}
	}
	if !isRight {
		return fmt.Errorf("%w: no secret has made the signature", ErrSignature)
	}
	return nil
}
