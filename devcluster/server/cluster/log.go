// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	_ "unsafe" // for go:linkname

	"go.uber.org/zap"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// Limits of the servers' log.
const (
	logKeep = 1 << 20  // a log of this size is truncated
	logMax  = 16 << 20 // maximum size of the log of one run
	logTail = 2 << 10  // length of the end of the log to include in an error
)

// etcdClientLogger is the log of the etcd client inside kube-apiserver. It prints
// a page of warnings to stderr when a control plane is stopped while it starts.
// Neither a flag nor its environment variable (ETCD_CLIENT_DEBUG, whose level is
// not taken) changes that. Should the variable move, linking fails.
//
//go:linkname etcdClientLogger k8s.io/apiserver/pkg/storage/storagebackend/factory.etcd3ClientLogger
var etcdClientLogger *zap.Logger

// serverLog receives the errors of kube-apiserver and the controllers. They log harmless errors at every start ("kube-system" not found, an
// empty manifest), which would only alarm a user.
type serverLog struct {
	file    *os.File // nil if klog writes to stderr
	start   int64    // where this run's lines begin
	written int64    // bytes of this run; guarded by klog's own lock
}

// openServerLog directs klog to stderr or to DataDir/server.log. klog is process-wide: the last call wins.
func openServerLog(cfg Config) (*serverLog, error) {
	setUpLoggers(cfg.Verbosity)
	if cfg.Verbosity > 0 {
		return &serverLog{}, nil
	}
	path := filepath.Join(cfg.DataDir, "server.log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("server log[%s]: %w", path, err)
	}
	if info, err := f.Stat(); err == nil && info.Size() > logKeep {
		_ = f.Truncate(0) // an oversized log must not prevent the start
	}
	l := &serverLog{file: f}
	if info, err := f.Stat(); err == nil {
		l.start = info.Size()
	}
	setOutput(l)
	return l, nil
}

// setUpLoggers sets klog's flags and the other loggers, once per process, because they are not guarded.
var setUpLoggers = func() func(int) {
	var once sync.Once
	return func(verbosity int) {
		once.Do(func() {
			flags := flag.NewFlagSet("klog", flag.ContinueOnError)
			klog.InitFlags(flags)
			values := map[string]string{"logtostderr": "true", "v": strconv.Itoa(verbosity)}
			if verbosity == 0 {
				values = map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"}
				etcdClientLogger = zap.NewNop()
			}
			for name, value := range values {
				if err := flags.Set(name, value); err != nil {
					panic("BUG: klog flag: " + err.Error())
				}
			}
			grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
		})
	}
}()

// setOutput sends klog's errors to w and discards the rest. Every severity needs an output: otherwise, klog creates log files in the
// temporary directory.
func setOutput(w io.Writer) {
	klog.SetOutputBySeverity("INFO", io.Discard)
	klog.SetOutputBySeverity("WARNING", io.Discard)
	klog.SetOutputBySeverity("ERROR", w)
	klog.SetOutputBySeverity("FATAL", io.Discard) // also printed on stderr
}

// Write appends to the log up to its limit, and discards the rest: an error that repeats for days must not fill the disk.
func (l *serverLog) Write(p []byte) (int, error) {
	if l.written < logMax {
		l.written += int64(len(p))
		return l.file.Write(p)
	}
	return len(p), nil
}

// explain adds the last lines that the servers logged in this run, at most logTail bytes, to err.
func (l *serverLog) explain(err error) error {
	var inUse *InUseError
	if l.file == nil || errors.As(err, &inUse) {
		return err
	}
	info, statErr := l.file.Stat()
	if statErr != nil {
		return err
	}
	from := max(l.start, info.Size()-logTail)
	tail, readErr := io.ReadAll(io.NewSectionReader(l.file, from, info.Size()-from))
	if text := strings.TrimSpace(string(tail)); readErr == nil && text != "" {
		return fmt.Errorf("%w\nthe servers logged:\n%s", err, text)
	}
	return err
}

func (l *serverLog) close() {
	if l.file != nil {
		setOutput(io.Discard)
		l.file.Close()
	}
}
