// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

func TestReserve_HandsOutOneAlignedBlockAndRefusesWhatIsTooLong(t *testing.T) {
	g := &guest{}
	small := g.reserve(1)
	if p := uintptr(unsafe.Pointer(&small[0])); p%8 != 0 {
		t.Errorf("block at %x is not aligned", p)
	}
	if again := g.reserve(4096); &again[0] != &small[0] {
		t.Error("a request that fits got another block")
	}
	if big := g.reserve(1 << 20); len(big) != 1<<20 {
		t.Errorf("got %d bytes", len(big))
	}
	if g.reserve(wire.MaxBytes+1) != nil || g.reserve(math.MaxUint32) != nil {
		t.Error("a request longer than a message may be was not refused")
	}
	if len(g.reserve(0)) == 0 {
		t.Error("an empty request was refused")
	}
}

func TestCall_BadMessageAndMissingReconcilerArePermanentErrors(t *testing.T) {
	for name, msg := range map[string][]byte{"empty": nil, "array": {0x90}, "truncated": {0x82, 0xa1, 'a', 1}} {
		got := run(t, &scriptHost{}, msg, func(*Context, Object) (Action, error) {
			t.Error(name + ": was reconciled")
			return Action{}, nil
		})
		equal(t, Value{must(t, got)}.String("error", "class"), "permanent")
	}
	g := &guest{host: &scriptHost{}}
	if msg := (Value{g.call("reconcile", golden(t, "request-full"))}).String("error", "message"); !strings.Contains(msg, "wasmctl.Register") {
		t.Errorf("got %q", msg)
	}
}

func must(t testing.TB, v any) []byte {
	t.Helper()
	b, err := wire.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCall_ReadsTheObjectWhereverItStands: the host writes the object last, but
// the order of keys has no meaning.
func TestCall_ReadsTheObjectWhereverItStands(t *testing.T) {
	b := wire.NewBuilder(nil)
	b.Raw("object", must(t, Map{"kind": "A", "metadata": Map{"name": "x"}}))
	b.Raw("key", must(t, Map{"name": "x"}))
	b.Raw("unknown", must(t, []any{1, Map{"a": nil}}))
	b.Int("attempt", 9)
	run(t, &scriptHost{}, b.End(), func(ctx *Context, obj Object) (Action, error) {
		equal(t, obj.Name(), "x")
		equal(t, ctx.Key().Name, "x")
		equal(t, ctx.Attempt(), 9)
		return AwaitChange(), nil
	})
}

func TestAnswer_ThatDoesNotFitIsTakenOnce(t *testing.T) {
	long := strings.Repeat("x", 3*minAnswer)
	host := &scriptHost{}
	host.answer(t, 0, Map{"kind": "A", "text": long})
	ref := ObjectRef{APIVersion: "v1", Kind: "A", Name: "a"}
	run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
		for range 2 {
			o, err := ctx.Client().Get(ref, GetOptions{})
			if err != nil || o.String("text") != long {
				t.Errorf("got %d bytes, %v", len(o.String("text")), err)
			}
		}
		return AwaitChange(), nil
	})
	equal(t, host.taken, 1) // the memory has grown, so the second fits

	host.forgets = true
	run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
		var e *Error
		if _, err := ctx.Client().Get(ref, GetOptions{}); !errors.As(err, &e) || e.Status != StatusInternal {
			t.Errorf("a host that holds nothing: %v", err)
		}
		return AwaitChange(), nil
	})
}

func TestClient_ResultsOutliveTheNextCall(t *testing.T) {
	host := &scriptHost{}
	run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
		host.answer(t, 0, Map{"kind": "First"})
		first, err := ctx.Client().Get(ObjectRef{APIVersion: "v1", Kind: "A", Name: "a"}, GetOptions{})
		host.answer(t, 0, Map{"kind": "Other"})
		if _, err2 := ctx.Client().Create(Map{"kind": "A"}, WriteOptions{}); err != nil || err2 != nil {
			t.Error(err, err2)
		}
		equal(t, first.Kind(), "First")
		return AwaitChange(), nil
	})
}

func TestClient_EveryStatusIsAnError(t *testing.T) {
	statuses := []int32{-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, math.MinInt32, 1, 404, 409, 422, 500, math.MaxInt32}
	for _, status := range statuses {
		for _, body := range [][]byte{nil, {0xc0}, {0xc1}, {0x81}, must(t, Map{"reason": 5, "rule": "x"})} {
			host := &scriptHost{status: status, body: body}
			run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
				var e *Error
				err := ctx.Client().Delete(ObjectRef{APIVersion: "v1", Kind: "A", Name: "a"}, DeleteOptions{})
				if !errors.As(err, &e) || e.Status != int(status) || e.Error() == "" || e.Ref.Name != "a" {
					t.Errorf("status %d, body %x: %v", status, body, err)
				}
				_, err = ctx.Config("x")
				if !errors.As(err, &e) {
					t.Errorf("config_get: status %d: %v", status, err)
				}
				return AwaitChange(), nil
			})
		}
	}
}

func TestClient_ObjectThatCannotBeSentMakesNoCall(t *testing.T) {
	host := &scriptHost{}
	run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
		_, err := ctx.Client().Apply(Map{"spec": Map{"x": math.NaN()}}, ApplyOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), "api_apply: encode: spec.x: ") || host.op != "" {
			t.Errorf("error %v, op %q", err, host.op)
		}
		_, err = ctx.Client().Patch(ObjectRef{Kind: "A", Name: "b"}, JSONPatch(PatchOp{Op: "add", Value: make(chan int)}), WriteOptions{})
		if err == nil || host.op != "" {
			t.Errorf("error %v, op %q", err, host.op)
		}
		_, err = ctx.Client().List(ObjectRef{Kind: "A", Name: "b"}, ListOptions{})
		if err == nil || host.op != "" {
			t.Errorf("error %v, op %q", err, host.op)
		}
		return AwaitChange(), nil
	})
}

func TestErrors_LayersAreGathered(t *testing.T) {
	base := errors.New("boom")
	conflict := &Error{Op: "api_update", Status: 409, Reason: "Conflict"}
	cases := []struct {
		err    error
		class  ErrorClass
		reason string
		after  time.Duration
	}{
		{base, ErrorTransient, "", 0},
		{Permanent(base), ErrorPermanent, "", 0},
		{fmt.Errorf("a: %w", RetryAfter(fmt.Errorf("b: %w", Permanent(WithReason(base, "R"))), time.Minute)), ErrorPermanent, "R", time.Minute},
		{WithReason(WithReason(base, "inner"), "outer"), ErrorTransient, "outer", 0},
		{fmt.Errorf("a: %w", conflict), ErrorConflict, "Conflict", 0},
		{&Error{Status: 409, Reason: "AlreadyExists"}, ErrorConflict, "AlreadyExists", 0},
		{Permanent(conflict), ErrorPermanent, "Conflict", 0},
		{errors.Join(base, Permanent(base)), ErrorPermanent, "", 0},
		{&Error{Status: StatusDenied, Reason: "Denied"}, ErrorTransient, "Denied", 0},
	}
	for _, c := range cases {
		q := classify(c.err)
		if q.class != c.class || q.reason != c.reason || q.after != c.after {
			t.Errorf("%v: %+v, want %v %q %v", c.err, q, c.class, c.reason, c.after)
		}
	}
	if Permanent(nil) != nil || RetryAfter(nil, 1) != nil || WithReason(nil, "R") != nil {
		t.Error("nil is no error")
	}
}

func TestErrors_MessageOfAnyBytesMayCrossTheWall(t *testing.T) {
	for _, text := range []string{"\xff\xfe", strings.Repeat("ä", maxMessage), ""} {
		v, err := wire.Decode(appendFailed(nil, errors.New(text)))
		m, _ := v.(map[string]any)
		if e, ok := m["error"].(map[string]any); err != nil || !ok || e["class"] != "transient" {
			t.Errorf("%.10q: %v, %v", text, v, err)
		}
	}
}

func TestErrors_PredicatesTellStatusesApart(t *testing.T) {
	joined := fmt.Errorf("a: %w", errors.Join(errors.New("b"), fmt.Errorf("c: %w", &Error{Status: 404, Reason: "R"})))
	e, ok := AsError(joined)
	equal(t, []any{ok, e.Reason, IsNotFound(joined)}, []any{true, "R", true})
	exists := fmt.Errorf("x: %w", &Error{Status: 409, Reason: "AlreadyExists"})
	conflict := &Error{Status: 409, Reason: "Conflict"}
	equal(t, []bool{IsAlreadyExists(exists), IsConflict(exists), IsAlreadyExists(conflict), IsConflict(conflict)}, []bool{true, false, false, true})
	equal(t, []bool{IsNotFound(&Error{Status: 404}), IsNotFound(errors.New("404")), IsNotFound(nil)}, []bool{true, false, false})
	equal(t, []bool{IsUnavailable(&Error{Status: 429}), IsUnavailable(&Error{Status: StatusUnavailable}), IsUnavailable(&Error{Status: 500})}, []bool{true, true, false})
	equal(t, []bool{IsForbidden(&Error{Status: 403}), IsInvalid(&Error{Status: 422}), IsCancelled(&Error{Status: -6})}, []bool{true, true, true})
}

func TestAction_TimesAreRoundedUpAndClamped(t *testing.T) {
	equal(t, Requeue(-time.Second), Requeue(0))
	equal(t, Requeue(time.Microsecond), Requeue(time.Millisecond))
	after, ok := Requeue(math.MaxInt64).Requeued()
	if !ok || after < 290*365*24*time.Hour {
		t.Errorf("longest time became %v, %v", after, ok)
	}
	equal(t, AwaitChange() == Action{}, true)
	equal(t, []string{AwaitChange().String(), Requeue(time.Minute).String()}, []string{"await change", "requeue after 1m0s"})
}

type loud int

func (l loud) String() string { return strings.Repeat("!", int(l)) }

func TestLog_LinesAreWrittenForTheHost(t *testing.T) {
	host := &scriptHost{level: int32(LevelInfo)}
	run(t, host, golden(t, "request-full"), func(ctx *Context, obj Object) (Action, error) {
		log := ctx.Log()
		log.Debug("not kept", "a", func() {})
		log.Info("m\xff", "n", 1, "err", errors.New("e"), "d", time.Second, "nan", math.NaN(), "s", loud(2), "v", obj.At("spec", "empty"))
		log.Warn("", "a", 1, "a", 2, "a", 3, "a_", 4, "msg", 5, 6, 7, "last")
		log.Error("bad", "f", func() {})
		return AwaitChange(), nil
	})
	equal(t, host.lines, []map[string]any{
		{"msg": "m\uFFFD", "n": int64(1), "err": "e", "d": "1s", "nan": "NaN", "s": "!!", "v": map[string]any{}},
		{"msg": "", "a": int64(1), "a_": int64(2), "a__": int64(3), "a___": int64(4), "msg_": int64(5), "!BADKEY": int64(7), "!BADKEY_": "last"},
		{"msg": "bad", "f": "!ERROR: Go type func() has no form in msgpack"},
	})
	equal(t, host.lastLine, int32(LevelError))
}

func TestConfig_IsReadFromTheHost(t *testing.T) {
	host := &scriptHost{}
	run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
		host.answer(t, 0, "-x")
		v, err := ctx.Config("suffix")
		equal(t, []any{v, err, host.op, host.asked(t)}, []any{"-x", nil, "config_get", map[string]any{"key": "suffix"}})
		host.answer(t, 0, nil)
		v, err = ctx.Config("unset")
		equal(t, []any{v, err}, []any{"", nil})
		host.answer(t, 0, Map{"a": "1"})
		all, err := ctx.AllConfig()
		equal(t, []any{all, err, host.asked(t)}, []any{map[string]string{"a": "1"}, nil, map[string]any{}})
		return AwaitChange(), nil
	})
}

func TestRegister_PanicsOnWhatCannotRun(t *testing.T) {
	defer func() { registered = nil }()
	f := func(*Context, Object) (Action, error) { return AwaitChange(), nil }
	panics := func(r Reconciler) (did bool) {
		defer func() { did = recover() != nil }()
		Register(r)
		return false
	}
	equal(t, []bool{panics(Reconciler{}), panics(Reconciler{Reconcile: f}), panics(Reconciler{Reconcile: f})}, []bool{true, false, true})
}

// lyingHost reports an arbitrary length for its answer.
type lyingHost struct {
	scriptHost
	length int
}

func (l *lyingHost) Call(*imports.Op, []byte, []byte) (status int32, length int) { return 0, l.length }

func TestAnswer_OfAnImpossibleLengthIsAnError(t *testing.T) {
	for _, n := range []int{-1, wire.MaxBytes + 1, math.MaxInt32} {
		run(t, &lyingHost{length: n}, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
			e, ok := AsError(ctx.Client().Delete(ObjectRef{APIVersion: "v1", Kind: "A", Name: "a"}, DeleteOptions{}))
			if !ok || e.Status != StatusTooLarge {
				t.Errorf("length %d: %v", n, e)
			}
			return AwaitChange(), nil
		})
	}
}
