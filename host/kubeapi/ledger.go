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

// Account counts memory that operations use, in bytes. Take refuses what there is
// no room for; Give gives back what was taken. It is safe for concurrent use.
type Account interface {
	Take(n int64) error
	Give(n int64)
}

const (
	// minDecoded is how long a message must be to be measured before it is decoded.
	minDecoded = 1 << 10
	// minBytes is how many bytes of a body are counted at a time; fewer are not.
	minBytes = 16 << 10
	// answerCopies is what an answer takes: its JSON, as it grows, and the msgpack.
	answerCopies = 3
	// declaredCopies is what a declared object takes until the last one is applied:
	// what the guest wrote, and the JSON of it.
	declaredCopies = 3
	// pageCopies is what a page from the cache takes: itself, as it grows.
	pageCopies = 3
)

// ledger is what one operation has taken of the account. It belongs to the
// goroutine of the operation, which takes before it allocates and gives all back
// when it ends. A nil ledger, and one without an account, take nothing.
type ledger struct {
	account Account
	taken   int64
}

// take counts n bytes. The error is a *refusal: the guest gets StatusBudget.
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

// takeBytes counts a body that is held, unless it is small.
func (l *ledger) takeBytes(n int) error {
	if n < minBytes {
		return nil
	}
	return l.take(int64(n))
}

// takePacked counts what msgpack takes once it is decoded.
func (l *ledger) takePacked(b []byte) error {
	if l == nil || l.account == nil || len(b) < minDecoded {
		return nil
	}
	_, n := packed.Measure(b)
	return l.take(n)
}

// takeJSON counts what JSON takes once it is decoded.
func (l *ledger) takeJSON(js []byte) error {
	if l == nil || l.account == nil || len(js) < minDecoded {
		return nil
	}
	return l.take(packed.MeasureJSON(js))
}

// mark returns what was taken until now, and rewind gives back what was taken
// since.
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

// close gives everything back.
func (l *ledger) close() { l.rewind(0) }

// noMemory is the error of an operation that there is no memory for. It tells a
// guest its limit, and nothing of others.
func noMemory(err error) error {
	r := &refusal{status: abi.StatusBudget, message: "the host has no memory for this now: ask for less, or later", err: err}
	if limit, ok := errors.AsType[*abi.LimitError](err); ok {
		r.message = (&abi.LimitError{Limit: limit.Limit, Value: limit.Value, What: r.message}).Error()
	}
	return r
}

// sending is the context of a request to the API server: with its ledger, which
// counts the answer, and with a logger that drops what client-go logs in addition
// to the error that it returns.
type sending struct {
	context.Context //nolint:containedctx // it is one

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

// quiet is the context of a request that is not counted.
func quiet(ctx context.Context) context.Context { return &sending{Context: ctx} }

// boundAnswers bounds the body of each answer, and counts it where its request
// has a ledger.
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

// answerBody is the body of an answer, of maxAnswerJSON bytes at most, which are
// counted while they are read.
type answerBody struct {
	io.ReadCloser

	ledger         *ledger
	length, counts int // what was read, and what of it is counted
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
