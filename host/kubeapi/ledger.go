// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"io"
	"net/http"

	"k8s.io/klog/v2"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// Account counts the memory that operations use, in bytes. Take fails if there is no room, and Give
// returns memory. It is safe for concurrent use.
type Account interface {
	Take(n int64) error
	Give(n int64)
}

const (
	// minDecoded is the minimum length of a message that is measured before it is decoded.
	minDecoded = 1 << 10
	// minBytes is the unit in which the bytes of a body are counted. Smaller bodies are not
	// counted.
	minBytes = 16 << 10
	// answerCopies is the memory of an answer, in multiples of its size: its growing JSON, and the
	// msgpack.
	answerCopies = 3
	// declaredCopies is the memory of a declared object until the last one is applied, in multiples
	// of its size: the guest's encoding, and its JSON.
	declaredCopies = 3
	// pageCopies is the memory of a page from the cache as it grows, in multiples of its size.
	pageCopies = 3
)

// ledger records the memory that one operation has taken from the account. It belongs to the
// goroutine of the operation, which takes memory before it allocates, and returns all of it when it
// ends. A nil ledger, and one without an account, count nothing.
type ledger struct {
	account Account
	taken   int64
}

// take takes n bytes. The error is a *refusal: the guest gets StatusBudget.
func (l *ledger) take(n int64) error {
	if l == nil || l.account == nil || n <= 0 {
		return nil
	}
	if err := l.account.Take(n); err != nil {
		return noMemory(err)
	}
	l.taken += n
	return nil
}

// takeBytes takes the memory of a body, unless it is small.
func (l *ledger) takeBytes(n int) error {
	if n < minBytes {
		return nil
	}
	return l.take(int64(n))
}

// takePacked takes the memory of msgpack in its decoded form.
func (l *ledger) takePacked(b []byte) error {
	if l == nil || l.account == nil || len(b) < minDecoded {
		return nil
	}
	_, n := packed.Measure(b)
	return l.take(n)
}

// takeJSON takes the memory of JSON in its decoded form.
func (l *ledger) takeJSON(js []byte) error {
	if l == nil || l.account == nil || len(js) < minDecoded {
		return nil
	}
	return l.take(packed.MeasureJSON(js))
}

// mark returns the memory taken so far, and rewind returns the memory that was taken since.
func (l *ledger) mark() int64 {
	if l == nil {
		return 0
	}
	return l.taken
}

func (l *ledger) rewind(mark int64) {
	if l == nil || l.taken == mark {
		return
	}
	l.account.Give(l.taken - mark)
	l.taken = mark
}

// close returns all memory.
func (l *ledger) close() { l.rewind(0) }

// noMemory is the error of an operation without enough memory. It tells a guest its own limit, and
// nothing about others.
func noMemory(err error) error {
	r := &refusal{status: abi.StatusBudget, message: "the host has no memory for this now: ask for less, or later", err: err}
	if limit, ok := errors.AsType[*abi.LimitError](err); ok {
		r.message = (&abi.LimitError{Limit: limit.Limit, Value: limit.Value, What: r.message}).Error()
	}
	return r
}

// sending is the context of a request to the API server. It has the request's ledger, which counts
// the answer, and a logger that discards what client-go logs in addition to the returned error.
type sending struct {
	context.Context //nolint:containedctx // it is a context itself

	ledger *ledger
}

type ledgerKey struct{}

var silent = klog.NewContext(context.Background(), klog.Logger{})

// Value implements context.Context.
func (s *sending) Value(key any) any {
	if key == (ledgerKey{}) {
		return s.ledger
	}
	if v := silent.Value(key); v != nil {
		return v
	}
	return s.Context.Value(key)
}

// quiet returns the context of a request that is not counted.
func quiet(ctx context.Context) context.Context { return &sending{Context: ctx} }

// boundAnswers limits the body of each answer, and counts it if its request has a ledger.
func boundAnswers(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if resp != nil && resp.Body != nil {
			l, _ := r.Context().Value(ledgerKey{}).(*ledger)
			resp.Body = &answerBody{ReadCloser: resp.Body, ledger: l}
		}
		return resp, err
	})
}

// answerBody is the body of an answer. It ends after maxAnswerJSON bytes, which are counted as they
// are read.
type answerBody struct {
	io.ReadCloser

	ledger         *ledger
	length, counts int // the bytes read, and the counted ones
}

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.length += n
	if b.length > maxAnswerJSON {
		return n, &http.MaxBytesError{Limit: maxAnswerJSON}
	}
	if fresh := b.length - b.counts; fresh >= minBytes {
		if refused := b.ledger.take(answerCopies * int64(fresh)); refused != nil {
			return n, refused
		}
		b.counts = b.length
	}
	return n, err
}
