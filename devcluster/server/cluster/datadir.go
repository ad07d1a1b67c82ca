// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// InUseError means that another process uses the data dir.
type InUseError struct {
	// Dir is the absolute path of the data dir.
	Dir string
	// PID is the process ID of the holder; 0 if the holder has not written it yet.
	PID int
}

// Error includes the directory, its holder and what to do.
func (e *InUseError) Error() string {
	holder := "another devcluster that is just starting"
	if e.PID != 0 {
		holder = fmt.Sprintf("devcluster with pid %d", e.PID)
	}
	return fmt.Sprintf("data dir[%s]: in use by the %s: stop that one or choose another --data-dir", e.Dir, holder)
}

// dataDir is a locked data dir.
//
// etcd would wait forever, ignoring signals, for a data dir that another etcd uses, so there is a separate lock. The kernel releases it
// however the process ends, so a kill -9 leaves no lock behind. The lock file contains one Info in JSON, without a URL while the control
// plane starts.
type dataDir struct {
	lock *os.File
}

// lockDataDir creates the directory if necessary and locks it.
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
		_ = json.NewDecoder(f).Decode(&holder) // if it is unreadable, the pid stays 0, and the message reflects that
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

// record replaces the text of the lock file. A reader uses only the first JSON value, so it never sees a mixture: the new text overwrites
// the old one in a single write, and the remainder of a longer old text is truncated afterwards.
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

// unlock releases the data dir.
func (d *dataDir) unlock() {
	_ = d.lock.Truncate(0) // only for people who look at the file: the lock is what counts
	d.lock.Close()
}
