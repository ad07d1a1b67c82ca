package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// InUseError says that another process holds the data dir.
type InUseError struct {
	// Dir is the data dir, absolute.
	Dir string
	// PID of the holder; 0 where the holder has not written it yet.
	PID int
}

// Error names the directory, its holder and what to do.
func (e *InUseError) Error() string {
	holder := "another devcluster that is just starting"
	if e.PID != 0 {
		holder = fmt.Sprintf("devcluster with pid %d", e.PID)
	}
	return fmt.Sprintf("data dir[%s]: in use by the %s: stop that one or choose another --data-dir", e.Dir, holder)
}

// dataDir is a data dir that this process has for itself.
//
// etcd waits forever, deaf to signals, for a data dir that another etcd holds.
// So there is a lock of our own before it. The kernel frees it however the
// process ends, so a kill -9 leaves no lock behind. The lock file's text is one
// Info in JSON: without a URL while the control plane starts.
type dataDir struct {
	lock *os.File
}

// lockDataDir makes the directory where it is missing and locks it.
func lockDataDir(dir string) (*dataDir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data dir[%s]: make: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data dir[%s]: open lock: %w", dir, err)
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		defer f.Close()
		var holder Info
		_ = json.NewDecoder(f).Decode(&holder) // unreadable: the pid stays 0, and the message says so
		return nil, &InUseError{Dir: dir, PID: holder.PID}
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("data dir[%s]: lock: %w", dir, err)
	}
	d := &dataDir{lock: f}
	if err := d.record(Info{PID: os.Getpid()}); err != nil {
		d.unlock()
		return nil, err
	}
	return d, nil
}

// record replaces the text of the lock file. A reader takes the first JSON value
// of it, so it never sees a mixture: the new text is written over the old in one
// write, and what is left of a longer old one is cut off afterwards.
func (d *dataDir) record(info Info) error {
	text, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("data dir: encode lock: %w", err)
	}
	text = append(text, '\n')
	if _, err := d.lock.WriteAt(text, 0); err != nil {
		return fmt.Errorf("data dir: write lock: %w", err)
	}
	if err := d.lock.Truncate(int64(len(text))); err != nil {
		return fmt.Errorf("data dir: write lock: %w", err)
	}
	return nil
}

// unlock gives the data dir back.
func (d *dataDir) unlock() {
	_ = d.lock.Truncate(0) // a courtesy to who looks in: the lock is what counts
	d.lock.Close()
}
