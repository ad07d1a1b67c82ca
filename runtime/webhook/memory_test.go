// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// recorder is an Account that remembers its peak.
type recorder struct {
	mu    sync.Mutex
	limit int64
	used  int64 // guarded by mu
	peak  int64 // guarded by mu
}

func (r *recorder) Take(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+n > r.limit {
		return errors.New("exhausted")
	}
	r.used += n
	r.peak = max(r.peak, r.used)
	return nil
}

func (r *recorder) Give(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
}

// manyKeys is a review of an object with many keys, which are not in order.
func manyKeys(t testing.TB, n int) string {
	var keys strings.Builder
	for i := range n {
		fmt.Fprintf(&keys, `"k%06d":1,`, i*7919%n)
	}
	return reviewOf(t, `{"operation":"CREATE","oldObject":null,"object":{"apiVersion":"example.com/v1","kind":"Job","spec":{`+keys.String()+`"last":1}}}`)
}

// changing is a backend whose webhooks return each object with another field or version.
func changing() *backendOf {
	b := jobs()
	b.admit = func(_ context.Context, w *abi.Webhook, a *abi.Admission) (abi.AdmissionResult, error) {
		if w.Type == abi.WebhookValidate {
			return abi.AdmissionResult{}, nil
		}
		object := edited(a.Object, func(_, value []byte) []byte { return value }, entry{"zone", []byte("\xa1a")})
		return abi.AdmissionResult{Object: object}, nil
	}
	b.convert = func(_ context.Context, c *abi.Conversion) ([][]byte, error) {
		for i, o := range c.Objects {
			c.Objects[i] = bytes.Replace(o, []byte("example.com/v1"), []byte("example.com/v2"), 1)
		}
		return c.Objects, nil
	}
	return b
}

// TestServer_ChargesWhatRequestsTake: the memory of a request is charged to the account of its backend, about as much as it allocates, and
// returned at its end.
func TestServer_ChargesWhatRequestsTake(t *testing.T) {
	for name, c := range map[string]struct{ path, body string }{
		"many keys":           {"/validate", manyKeys(t, 100_000)},
		"a patch":             {"/default", manyKeys(t, 12_000)},
		"a patch, many keys":  {"/default", manyKeys(t, 20_000)},
		"floats":              {"/validate", reviewOf(t, `{"object":{"apiVersion":"example.com/v1","kind":"Job","x":[`+strings.Repeat("1.5,", 200_000)+`1]}}`)},
		"a long text":         {"/validate", reviewOf(t, `{"object":{"apiVersion":"example.com/v1","kind":"Job","x":"`+strings.Repeat("x", 3<<20)+`"}}`)},
		"objects, to convert": {"/convert", conversionReview("example.com/v2", slicesOf(2000, job)...)},
	} {
		t.Run(name, func(t *testing.T) {
			account := &recorder{limit: 1 << 30}
			s := New(Config{})
			s.Add("jobs", "", changing(), account)
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			before := allocated()
			w := post(s, c.path, c.body)
			took := int64(allocated() - before)
			if w.Code != http.StatusOK {
				t.Fatalf("%d %.300s", w.Code, w.Body)
			}
			took -= 3 * int64(w.Body.Len()) // by the recorder of the answer
			t.Logf("a body of %d KiB: %d KiB charged, %d KiB allocated", len(c.body)>>10, account.peak>>10, took>>10)
			if account.used != 0 || took > 4*account.peak || account.peak > 4*took {
				t.Errorf("%d bytes are charged at the end, at most %d, for %d that were allocated", account.used, account.peak, took)
			}
		})
	}
}

// allocated returns the number of bytes that were ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func slicesOf(n int, object string) []string {
	objects := make([]string, n)
	for i := range objects {
		objects[i] = object
	}
	return objects
}

// TestServer_AnAccountWithoutMemoryRefuses: a request that an account cannot pay is refused, and no other account is charged for it.
func TestServer_AnAccountWithoutMemoryRefuses(t *testing.T) {
	poor, rich := &recorder{limit: 1 << 10}, &recorder{limit: 1 << 30}
	s := New(Config{})
	s.Add("poor", "/poor", jobs(), rich, poor)
	s.Add("rich", "/rich", jobs(), rich)
	refused(t, post(s, "/poor/validate", reviewOf(t)), http.StatusServiceUnavailable, "too much memory")
	if w := post(s, "/rich/validate", reviewOf(t)); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if poor.used != 0 || rich.used != 0 || s.memory.used.Load() != 0 {
		t.Errorf("%d, %d and %d bytes are charged", poor.used, rich.used, s.memory.used.Load())
	}
}

// TestServer_AFloodOfHostileReviewsIsShed: thirty reviews at once that take the most memory stay within the bounds.
func TestServer_AFloodOfHostileReviewsIsShed(t *testing.T) {
	account := &recorder{limit: 1 << 40}
	s := New(Config{})
	s.Add("jobs", "", changing(), account)
	body := manyKeys(t, 200_000)
	var clients sync.WaitGroup
	for range 30 {
		clients.Go(func() {
			if w := post(s, "/validate", body); w.Code != http.StatusOK && w.Code != http.StatusServiceUnavailable {
				t.Errorf("%d %.300s", w.Code, w.Body)
			}
		})
	}
	clients.Wait()
	if limit := s.cfg.Limits.BackendMemory; account.peak > limit || account.used != 0 {
		t.Errorf("%d bytes were charged of %d, and %d remain", account.peak, limit, account.used)
	}
	if w := post(s, "/validate", reviewOf(t)); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}
