// Takes runs from firelock, in Go 1.19 or newer without modules: verifies the signature, notes each run once in a file,
// answers, and then does the work.
//
//	WEBHOOK_SECRET=whsec_... go run receiver.go      several secrets: with spaces between them
//	                                                 PORT (9000), DIRECTORY (runs), in which it remembers
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tolerance = 5 * time.Minute
	mostBytes = 16 << 20
	// Longer than firelock keeps runs (FIRELOCK_RETENTION_DAYS): so long may a run be sent again.
	keep = 32 * 24 * time.Hour
)

var (
	secrets   = strings.Fields(os.Getenv("WEBHOOK_SECRET"))
	directory = setting("DIRECTORY", "runs")
	runIDs    = regexp.MustCompile(`^[0-9a-f-]{36}$`)
	lock      sync.Mutex // for the files of runs
	news      = make(chan struct{}, 1)
)

// The folders of DIRECTORY, with a file for each run.
const (
	todo = "todo"
	done = "done"
)

// What a file remembers of a run.
type note struct {
	Attempt int             `json:"attempt"`
	Body    json.RawMessage `json:"body"`
}

type run struct {
	RunID   string          `json:"runId"`
	Attempt int             `json:"attempt"`
	Payload json.RawMessage `json:"payload"`
}

// Put your work here. It may be done twice if the process dies in the middle of it.
func work(r run) error {
	fmt.Printf("%s: done\n", r.RunID)
	return nil
}

// isSigned says whether one of the secrets has signed the body as it arrived, at most five minutes ago.
func isSigned(header http.Header, body []byte) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || math.Abs(time.Since(time.Unix(seconds, 0)).Seconds()) > tolerance.Seconds() {
		return false
	}
	isRight := false
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			log.Fatal("WEBHOOK_SECRET is no secret")
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, timestamp)
		mac.Write(body)
		expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, signature := range strings.Split(header.Get("webhook-signature"), " ") {
			isRight = hmac.Equal([]byte(signature), []byte(expected)) || isRight
		}
	}
	return isRight
}

// accept answers the highest attempt that was here. The run is on the disk when it returns, however often it comes.
func accept(r run, body []byte) (int, error) {
	lock.Lock()
	defer lock.Unlock()
	for _, state := range []string{todo, done} {
		known, err := readIn(state, r.RunID)
		if err != nil {
			return 0, err
		}
		if known == nil {
			continue
		}
		if r.Attempt <= known.Attempt {
			return known.Attempt, nil
		}
		known.Attempt = r.Attempt
		return r.Attempt, write(state, r.RunID, known)
	}
	return r.Attempt, write(todo, r.RunID, &note{Attempt: r.Attempt, Body: body})
}

func receive(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, mostBytes))
	if err != nil {
		answer(response, http.StatusRequestEntityTooLarge, "error", "the body is too large")
		return
	}
	if !isSigned(request.Header, body) {
		answer(response, http.StatusUnauthorized, "error", "the signature is not right")
		return
	}
	var r run
	// The id becomes the name of a file.
	if json.Unmarshal(body, &r) != nil || r.Attempt < 1 || !runIDs.MatchString(r.RunID) {
		answer(response, http.StatusBadRequest, "error", "the body is no run of firelock")
		return
	}
	highest, err := accept(r, body)
	switch {
	case err != nil:
		log.Print(err)
		answer(response, http.StatusServiceUnavailable, "error", "cannot take it now")
	case r.Attempt < highest:
		answer(response, http.StatusConflict, "error", fmt.Sprintf("attempt %d was here", highest))
	default:
		wake()
		answer(response, http.StatusAccepted, "executionId", "job-"+r.RunID)
	}
}

func answer(response http.ResponseWriter, status int, name, value string) {
	response.Header().Set("content-type", "application/json")
	response.WriteHeader(status)
	json.NewEncoder(response).Encode(map[string]string{name: value})
}

func workForever() {
	for {
		failed := false
		entries, err := os.ReadDir(filepath.Join(directory, todo))
		if err != nil {
			log.Fatal(err)
		}
		for _, entry := range entries {
			// One bad run does not stop the others.
			if err := finish(strings.TrimSuffix(entry.Name(), ".json")); err != nil {
				log.Printf("%s: %v; again later", entry.Name(), err)
				failed = true
			}
		}
		if failed {
			time.AfterFunc(10*time.Second, wake)
		}
		<-news
	}
}

func finish(id string) error {
	if !runIDs.MatchString(id) {
		return nil
	}
	known, err := readIn(todo, id)
	if err != nil || known == nil {
		return err
	}
	var r run
	if err := json.Unmarshal(known.Body, &r); err != nil {
		return err
	}
	if err := work(r); err != nil {
		return err
	}
	lock.Lock()
	defer lock.Unlock()
	// It may have come again meanwhile, with a higher attempt.
	return os.Rename(pathOf(todo, id), pathOf(done, id))
}

// readIn answers nil where nothing is known of the run.
func readIn(state, id string) (*note, error) {
	text, err := os.ReadFile(pathOf(state, id))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := &note{}
	return known, json.Unmarshal(text, known)
}

// write is done when the file is on the disk, whole.
func write(state, id string, known *note) error {
	text, err := json.Marshal(known)
	if err != nil {
		return err
	}
	fresh := filepath.Join(directory, id+".new")
	file, err := os.Create(fresh)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(fresh, pathOf(state, id)); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Join(directory, state))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

func pathOf(state, id string) string {
	return filepath.Join(directory, state, id+".json")
}

// forgetOld removes what is too old to come again.
func forgetOld() {
	paths, _ := filepath.Glob(filepath.Join(directory, done, "*.json"))
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > keep {
			os.Remove(path)
		}
	}
}

func wake() {
	select {
	case news <- struct{}{}:
	default:
	}
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func main() {
	if len(secrets) == 0 {
		log.Fatal("WEBHOOK_SECRET is missing")
	}
	for _, state := range []string{todo, done} {
		if err := os.MkdirAll(filepath.Join(directory, state), 0o700); err != nil {
			log.Fatal(err)
		}
	}
	forgetOld()
	go workForever()
	listener, err := net.Listen("tcp", "127.0.0.1:"+setting("PORT", "9000"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("receiver listens on http://%s\n", listener.Addr())
	server := &http.Server{Handler: http.HandlerFunc(receive), ReadTimeout: time.Minute}
	log.Fatal(server.Serve(listener))
}
