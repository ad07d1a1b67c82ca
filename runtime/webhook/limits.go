// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"errors"
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
	// Memory is the maximum size of all requests and answers in memory in bytes, including the copies and decoded values that they need, and
	// BackendMemory that of those for one backend.
	Memory, BackendMemory int64
}

func (l *Limits) setDefaults() {
	l.Admission = cmp.Or(l.Admission, 7<<20)
	l.Conversion = cmp.Or(l.Conversion, 32<<20)
	l.Concurrency = cmp.Or(l.Concurrency, 16)
	l.Queue = cmp.Or(l.Queue, 1000)
	l.Memory = cmp.Or(l.Memory, 256<<20)
	l.BackendMemory = cmp.Or(l.BackendMemory, 128<<20)
}

// Account is charged for memory. It is safe for concurrent use.
type Account interface {
	// Take charges n bytes, or returns an error if the account does not have them.
	Take(n int64) error
	// Give returns bytes that were taken.
	Give(n int64)
}

// budget is an Account with a fixed limit.
type budget struct {
	limit int64
	used  atomic.Int64
}

var errBudget = errors.New("the budget is exhausted")

// Take implements Account.
func (b *budget) Take(n int64) error {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return errBudget
	}
	return nil
}

// Give implements Account.
func (b *budget) Give(n int64) { b.used.Add(-n) }

// lease is the memory that one request uses. Each of the accounts is charged for it. It is safe for concurrent use.
type lease struct {
	accounts []Account
	taken    atomic.Int64
}

// take charges n bytes, unless an account does not have them.
func (l *lease) take(n int64) error {
	for i, a := range l.accounts {
		if a.Take(n) == nil {
			continue
		}
		for _, taken := range l.accounts[:i] {
			taken.Give(n)
		}
		return refuse(http.StatusServiceUnavailable, "too many requests: their objects take too much memory")
	}
	l.taken.Add(n)
	return nil
}

// give returns n bytes that were taken.
func (l *lease) give(n int64) {
	l.taken.Add(-n)
	for _, a := range l.accounts {
		a.Give(n)
	}
}

// resize changes the memory of the request to n bytes. No other method may run at the same time.
func (l *lease) resize(n int64) error {
	taken := l.taken.Load()
	if n > taken {
		return l.take(n - taken)
	}
	l.give(taken - n)
	return nil
}

// release returns all bytes.
func (l *lease) release() { l.give(l.taken.Load()) }
