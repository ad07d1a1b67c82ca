// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"net/http"
	"sync/atomic"
)

// Limits bound the work of a Server. Zero means the default of a limit.
type Limits struct {
	// Admission is the maximum size of an AdmissionReview in bytes, which has two objects in an update; the API server accepts objects of
	// 3 MiB.
	Admission int64
	// Conversion is the maximum size of a ConversionReview in bytes, which may have all objects of a list.
	Conversion int64
	// Concurrency is the number of requests that one backend judges at a time. Up to Queue more requests wait.
	Concurrency, Queue int
	// Memory is the maximum size of all requests and answers in memory in bytes, and PrefixMemory that of those for the backends with one
	// prefix.
	Memory, PrefixMemory int64
}

func (l *Limits) setDefaults() {
	l.Admission = cmp.Or(l.Admission, 7<<20)
	l.Conversion = cmp.Or(l.Conversion, 64<<20)
	l.Concurrency = cmp.Or(l.Concurrency, 16)
	l.Queue = cmp.Or(l.Queue, 1000)
	l.Memory = cmp.Or(l.Memory, 1<<30)
	l.PrefixMemory = cmp.Or(l.PrefixMemory, 256<<20)
}

// budget bounds the bytes in use, also those of a parent. It is safe for concurrent use.
type budget struct {
	limit  int64
	parent *budget // nil at the root
	used   atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b == nil {
		return true
	}
	if b.used.Add(n) <= b.limit && b.parent.take(n) {
		return true
	}
	b.used.Add(-n)
	return false
}

// lease is the part of a budget that one request uses. It is safe for concurrent use.
type lease struct {
	*budget

	taken atomic.Int64
}

// take reserves n bytes, unless fewer are left.
func (l *lease) take(n int64) error {
	if !l.budget.take(n) {
		return refuse(http.StatusServiceUnavailable, "too many requests: their objects take too much memory")
	}
	l.taken.Add(n)
	return nil
}

// release returns all bytes.
func (l *lease) release() {
	for b := l.budget; b != nil; b = b.parent {
		b.used.Add(-l.taken.Load())
	}
}
