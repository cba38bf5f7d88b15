// Takes runs from firelock, in Go 1.19 or newer: verifies the signature, notes each run once, answers, and then does the work.
//
//	WEBHOOK_SECRET=whsec_... go run receiver.go      several secrets: with spaces between them
//	                                                 PORT (9000), DIRECTORY (runs), in which it remembers
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	firelock "firelock.example/clients/go"
)

var (
	directory = setting("DIRECTORY", "runs")
	todo      = filepath.Join(directory, "todo")
	news      = make(chan struct{}, 1)
)

// Put your work here. It may be done twice if the process dies in the middle of it.
func work(run firelock.HandedRun) error {
	fmt.Printf("%s: done\n", run.RunID)
	return nil
}

// note is called once for each run; what it returns is the answer. It only notes the run, so that the answer comes soon.
func note(run firelock.HandedRun) (any, error) {
	text, err := json.Marshal(run)
	if err != nil {
		return nil, err
	}
	if err := write(run.RunID, text); err != nil {
		return nil, err
	}
	wake()
	return map[string]string{"executionId": "job-" + run.RunID}, nil
}

// write is done when the file is on the disk, whole.
func write(id string, text []byte) error {
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
	if err := os.Rename(fresh, filepath.Join(todo, id)); err != nil {
		return err
	}
	folder, err := os.Open(todo)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

func workForever() {
	for {
		entries, err := os.ReadDir(todo)
		if err != nil {
			log.Fatal(err)
		}
		for _, entry := range entries {
			// One bad run does not stop the others.
			if err := finish(filepath.Join(todo, entry.Name())); err != nil {
				log.Printf("%s: %v; again later", entry.Name(), err)
				time.AfterFunc(10*time.Second, wake)
			}
		}
		<-news
	}
}

func finish(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var run firelock.HandedRun
	if err := json.Unmarshal(text, &run); err != nil {
		return err
	}
	if err := work(run); err != nil {
		return err
	}
	return os.Remove(path)
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
	if err := os.MkdirAll(todo, 0o700); err != nil {
		log.Fatal(err)
	}
	receiver, err := firelock.NewReceiver(note, strings.Fields(os.Getenv("WEBHOOK_SECRET"))...)
	if err != nil {
		log.Fatal(err)
	}
	// Which runs were here, and what was answered. It outlives the process.
	if receiver.Store, err = firelock.OpenFileStore(filepath.Join(directory, "seen.jsonl")); err != nil {
		log.Fatal(err)
	}
	go workForever()
	listener, err := net.Listen("tcp", "127.0.0.1:"+setting("PORT", "9000"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("receiver listens on http://%s\n", listener.Addr())
	server := &http.Server{Handler: receiver, ReadTimeout: time.Minute}
	log.Fatal(server.Serve(listener))
}
