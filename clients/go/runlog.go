package firelock

import "sync"

const (
	// The daemon takes no more in one call.
	partBytes = 65_536
	// While the daemon is away; then the oldest give way, and their place in the log is a gap.
	keptBytes = 262_144
)

// runLog is what a run prints, on its way to the daemon. append may be called again with an offset that was written already:
// the daemon then takes what is new.
type runLog struct {
	append func(offset int64, part []byte) error

	lock      sync.Mutex
	kept      []byte
	offset    int64
	isOff     bool
	hasFailed bool
	sending   sync.Mutex
}

// write answers true where there is enough for a part, and the last one could be sent.
func (l *runLog) write(text []byte) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.isOff {
		return false
	}
	l.kept = append(l.kept, text...)
	if surplus := len(l.kept) - keptBytes; surplus > 0 {
		for surplus < len(l.kept) && isContinuation(l.kept[surplus]) {
			surplus++
		}
		l.forget(l.offset + int64(surplus))
	}
	return len(l.kept) >= partBytes && !l.hasFailed
}

// flush sends what is there, part after part. An error that is final comes once; then no more is kept.
func (l *runLog) flush() error {
	l.sending.Lock()
	defer l.sending.Unlock()
	for {
		offset, part := l.next()
		if len(part) == 0 {
			return nil
		}
		err := l.append(offset, part)
		l.lock.Lock()
		l.hasFailed, l.isOff = err != nil, isFinal(err)
		if l.isOff {
			l.kept = nil
		} else if err == nil {
			l.forget(offset + int64(len(part)))
		}
		l.lock.Unlock()
		if err != nil {
			return err
		}
	}
}

func (l *runLog) next() (int64, []byte) {
	l.lock.Lock()
	defer l.lock.Unlock()
	length := min(len(l.kept), partBytes)
	for length < len(l.kept) && length > partBytes-3 && isContinuation(l.kept[length]) {
		length--
	}
	return l.offset, append([]byte(nil), l.kept[:length]...)
}

// forget drops what is before this offset, unless that has given way already.
func (l *runLog) forget(end int64) {
	if end > l.offset {
		l.kept = append([]byte(nil), l.kept[end-l.offset:]...)
		l.offset = end
	}
}

func isContinuation(b byte) bool { return b&0xc0 == 0x80 }
