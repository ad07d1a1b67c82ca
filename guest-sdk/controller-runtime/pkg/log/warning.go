// SPDX-License-Identifier: Apache-2.0

package log

import (
	"context"
	"sync"
)

// warningCode is the code of the API server's warnings.
const warningCode = 299

// KubeAPIWarningLoggerOptions are the options of NewKubeAPIWarningLogger.
type KubeAPIWarningLoggerOptions struct {
	// Deduplicate logs each warning once.
	Deduplicate bool
}

// KubeAPIWarningLogger logs warnings of the API server. A module does not use
// it, because the host logs them.
type KubeAPIWarningLogger struct {
	opts   KubeAPIWarningLoggerOptions
	logged sync.Map
}

// NewKubeAPIWarningLogger returns a logger for warnings.
func NewKubeAPIWarningLogger(opts KubeAPIWarningLoggerOptions) *KubeAPIWarningLogger {
	return &KubeAPIWarningLogger{opts: opts}
}

// HandleWarningHeader is HandleWarningHeaderWithContext without a context, for
// programs of version 0.19.
func (l *KubeAPIWarningLogger) HandleWarningHeader(code int, agent, message string) {
	l.HandleWarningHeaderWithContext(context.Background(), code, agent, message)
}

// HandleWarningHeaderWithContext logs a warning.
func (l *KubeAPIWarningLogger) HandleWarningHeaderWithContext(ctx context.Context, code int, _, message string) {
	if code != warningCode || message == "" {
		return
	}
	if l.opts.Deduplicate {
		if _, before := l.logged.LoadOrStore(message, true); before {
			return
		}
	}
	FromContext(ctx).Info(message)
}
