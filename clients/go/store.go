package firelock

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Reply is what a receiver answers.
type Reply struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// A Verdict on an attempt that has come.
type Verdict struct {
	// "new": work on it. "done": Reply was answered. "busy": it is being worked on. "stale": the attempt Seen was higher.
	State string
	Reply *Reply
	Seen  int
}

// A Store is what a receiver remembers of runs. If several processes share the work, write one for your database: Begin
// decides in one transaction, with the run's id as primary key. Keep runs for as long as firelock does
// (FIRELOCK_RETENTION_DAYS), and two days more.
type Store interface {
	// Begin notes the attempt and says what to do with it: of two calls at once for a run, one is "new".
	Begin(runID string, attempt int) (Verdict, error)
	// Finish: the work is done; from now on the run is "done". When this returns, it outlives the process.
	Finish(runID string, attempt int, reply Reply) error
	// Release: the work has failed, and another attempt may do it. The attempt stays noted.
	Release(runID string, attempt int) error
}

const (
	mostInMemory = 10_000
	keepRuns     = 32 * 24 * time.Hour
)

type remembered struct {
	RunID   string `json:"runId"`
	Attempt int    `json:"attempt"`
	Reply   *Reply `json:"reply"`
	isBusy  bool
}

// A FileStore remembers runs in a file of JSON lines, also over kills and power failures; for one process at a time. When it
// is opened it drops runs whose scheduledFor is more than 32 days ago; it holds all others in memory.
type FileStore struct {
	lock sync.Mutex
	runs map[string]*remembered
	// In memory only: the order in which they came.
	order []string
	file  *os.File
}

// NewMemoryStore forgets everything when the process ends, and before that all but the newest 10,000 runs.
func NewMemoryStore() *FileStore { return &FileStore{runs: map[string]*remembered{}} }

// OpenFileStore reads the file, if it is there.
func OpenFileStore(path string) (*FileStore, error) {
	s := NewMemoryStore()
	if err := s.load(path, time.Now().Add(-keepRuns).UnixMilli()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := s.rewrite(path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	s.file = file
	return s, err
}

func (s *FileStore) Begin(runID string, attempt int) (Verdict, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	known := s.runs[runID]
	if known != nil && attempt < known.Attempt {
		return Verdict{State: "stale", Seen: known.Attempt}, nil
	}
	if known == nil {
		known = &remembered{RunID: runID}
		s.runs[runID] = known
		s.forgetOldest(runID)
	}
	known.Attempt = attempt
	switch {
	case known.Reply != nil:
		return Verdict{State: "done", Reply: known.Reply}, nil
	case known.isBusy:
		return Verdict{State: "busy"}, nil
	}
	// Before the work begins, so that a lower attempt is refused also after a restart.
	if err := s.write(known, false); err != nil {
		return Verdict{}, err
	}
	known.isBusy = true
	return Verdict{State: "new"}, nil
}

func (s *FileStore) Finish(runID string, attempt int, reply Reply) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	known := s.runs[runID]
	known.isBusy, known.Reply = false, &reply
	return s.write(known, true)
}

func (s *FileStore) Release(runID string, attempt int) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.runs[runID].isBusy = false
	return nil
}

func (s *FileStore) Close() error { return s.file.Close() }

func (s *FileStore) write(run *remembered, mustLast bool) error {
	if s.file == nil {
		return nil
	}
	text, err := json.Marshal(run)
	if err == nil {
		_, err = s.file.Write(append(text, '\n'))
	}
	if err == nil && mustLast {
		err = s.file.Sync()
	}
	return err
}

func (s *FileStore) forgetOldest(runID string) {
	if s.file != nil {
		return
	}
	s.order = append(s.order, runID)
	for len(s.order) > mostInMemory && !s.runs[s.order[0]].isBusy {
		delete(s.runs, s.order[0])
		s.order = s.order[1:]
	}
}

// load: what a process that ended was working on is not busy any more.
func (s *FileStore) load(path string, oldest int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		run := &remembered{}
		// One that is cut was being written when the power failed.
		if json.Unmarshal(line, run) != nil || timeOf(run.RunID) < oldest {
			continue
		}
		if known := s.runs[run.RunID]; known != nil {
			run.Attempt = max(run.Attempt, known.Attempt)
			if run.Reply == nil {
				run.Reply = known.Reply
			}
		}
		s.runs[run.RunID] = run
	}
}

// timeOf: the id of a run begins with the 48 bits of its scheduledFor.
func timeOf(runID string) int64 {
	if len(runID) < 13 {
		return 1<<63 - 1
	}
	at, err := strconv.ParseInt(strings.ReplaceAll(runID[:13], "-", ""), 16, 64)
	if err != nil {
		return 1<<63 - 1
	}
	return at
}

// rewrite: one line for each run, in a new file that takes the place of the old one when it is whole.
func (s *FileStore) rewrite(path string) error {
	fresh := path + ".new"
	file, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewWriter(file)
	encoder := json.NewEncoder(lines)
	for _, run := range s.runs {
		if err := encoder.Encode(run); err != nil {
			return err
		}
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
