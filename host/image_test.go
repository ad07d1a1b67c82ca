// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// statefulGuest is the guest of testdata.
func statefulGuest(t *testing.T) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds a guest")
	}
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = filepath.Join("testdata", "statefulguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// another makes an instance, in a lease of its own.
func anotherLease(tb testing.TB, m *Module) *lease {
	tb.Helper()
	g := m.last.Load()
	in, err := g.newInstance(tb.Context(), g.settings.Load())
	if err != nil {
		tb.Fatal(err)
	}
	l := &lease{rev: g, in: in}
	tb.Cleanup(func() {
		if l.in != nil {
			l.in.Close(context.Background())
		}
	})
	return l
}

// imaged loads a module that has an image.
func imaged(tb testing.TB, module []byte, cfg Config) *Module {
	tb.Helper()
	m := loaded(tb, module, cfg)
	anotherLease(tb, m)
	if !m.last.Load().maker.HasImage() {
		tb.Fatal("there is no image")
	}
	return m
}

// withoutImage has all instances of a module run its start code.
func withoutImage(m *Module) {
	rev := m.last.Load()
	rev.maker.(*instance.LocalMaker).WithoutImage(rev.settings.Load())
}

// said is what a run says, as text.
func said(l *lease, mode byte) string {
	res, err := l.run(context.Background(), abi.ExportReconcile, request(mode))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(res.Action)
}

// Instances of an image do not know each other, are as new, and draw different numbers,
// though they share what start code has made.
func TestImage_InstancesOfGo(t *testing.T) {
	inThisProcess(t)
	guest, err := load.WithFiles(statefulGuest(t), map[string][]byte{"/etc/words": []byte("aabbccdd")})
	if err != nil {
		t.Fatal(err)
	}
	m, fresh := imaged(t, guest, Config{}), loaded(t, guest, Config{})
	withoutImage(fresh)
	numbers := map[string]bool{}
	for range 5 {
		of, alone := anotherLease(t, m), anotherLease(t, fresh)
		for _, mode := range []byte{2, 5, 6, 2, 5, 6, 4} {
			if got, want := said(of, mode), said(alone, mode); got != want {
				t.Errorf("mode %d: %q, want %q", mode, got, want)
			}
		}
		if of.in != nil || alone.in != nil {
			t.Error("a panic leaves the instance")
		}
		other := anotherLease(t, m)
		for _, mode := range []byte{0, 0, 1, 1} {
			numbers[fmt.Sprint(mode, said(other, mode))] = true
		}
	}
	if len(numbers) < 19 { // of 20, with 26 bits each
		t.Errorf("instances draw the same numbers: %v", numbers)
	}
}

// randomGuests are guests that draw random bytes in the entry that the letter after "draw in "
// names, with the mode of reconcile that shows them, and the entries that can draw.
func randomGuests(t *testing.T) map[string]randomGuest {
	guests := map[string]randomGuest{"go": {statefulGuest(t), 10, "idcr"}, "wat": {wasm.Draws, 0, "idcr"}}
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(t.Context(), "rustc", "--edition=2021", "--crate-type=cdylib", "--target=wasm32-unknown-unknown",
		"-Cpanic=abort", "-Cstrip=symbols", "-o", out, filepath.Join("testdata", "randomguest", "guest.rs"))
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Logf("SKIPPED: no Rust with target wasm32-unknown-unknown: %v\n%s", err, msg)
		return guests
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	guests["rust"] = randomGuest{b, 0, "idcr"}
	return guests
}

type randomGuest struct {
	module  []byte
	mode    byte
	entries string
}

// drawing returns the guest with the entry in which it draws.
func (g *randomGuest) drawing(entry rune) []byte {
	return bytes.ReplaceAll(g.module, []byte("draw in -"), fmt.Appendf(nil, "draw in %c", entry))
}

// No two instances show the same random bytes, in whichever entry the guest has drawn them:
// neither instances of one controller, nor those of two. A guest that draws after its start
// code starts from an image.
func TestImage_NoTwoInstancesHaveTheSameRandomBytes(t *testing.T) {
	inThisProcess(t)
	for name, guest := range randomGuests(t) {
		for _, entry := range guest.entries {
			module, codes, shown := guest.drawing(entry), &Codes{}, map[string]int{}
			for range 2 {
				m := loaded(t, module, Config{Process: Process{Codes: codes}})
				for range 5 {
					if got := said(anotherLease(t, m), guest.mode); !strings.HasSuffix(got, " 0s") { // describe is not called in each instance
						shown[got]++
					}
				}
				if has := m.last.Load().maker.HasImage(); has != (entry == 'r') {
					t.Errorf("%s, %c: there is an image: %t, %v", name, entry, has, m.NoImage())
				}
			}
			for value, instances := range shown {
				if instances > 1 {
					t.Errorf("%s, %c: %d instances show the same bytes: %s", name, entry, instances, value)
				}
			}
			if len(shown) < 10 && entry != 'd' || len(shown) == 0 {
				t.Errorf("%s, %c: %d instances show random bytes", name, entry, len(shown))
			}
		}
	}
}

// randomProgram is a random module: start code that changes memory and globals and grows, and
// a reconcile that does the same and answers with a hash of all of it.
func randomProgram(r *rand.Rand) []byte {
	p := &programmer{r: r}
	return p.module()
}

// Whatever start code does to memory and globals, an instance of the image answers what
// one does that has run it, again and again.
func TestImage_RandomProgramsBehaveAsFresh(t *testing.T) {
	inThisProcess(t)
	rounds := 150
	if testing.Short() {
		rounds = 20
	}
	made := 0
	for seed := range uint64(rounds) {
		module := randomProgram(rand.New(rand.NewPCG(seed, 1)))
		cfg := Config{Clock: operation.Clock{Random: zeroReader{}, Now: func() time.Time { return time.UnixMilli(1) }}}
		m, fresh := loaded(t, module, cfg), loaded(t, module, cfg)
		withoutImage(fresh)
		for round := range 4 {
			of, alone := anotherLease(t, m), anotherLease(t, fresh)
			var got, want []string
			for mode := range byte(6) {
				if of.in == nil || alone.in == nil {
					break
				}
				got, want = append(got, said(of, mode)), append(want, said(alone, mode))
			}
			if diff := cmp.Diff(want, got); diff != "" || (of.in == nil) != (alone.in == nil) {
				t.Fatalf("seed %d, instance %d: %s", seed, round, diff)
			}
		}
		if m.last.Load().maker.HasImage() {
			made++
		}
	}
	if made < rounds/2 {
		t.Errorf("%d images of %d programs", made, rounds)
	}
}

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// What has other state than memory and globals, asks for random bytes nobody can
// replace, or runs nothing when it starts, has no image, and works.
func TestImage_WhereThereIsNone(t *testing.T) {
	inThisProcess(t)
	for name, module := range map[string][]byte{"tables": wasm.Tables, "random": wasm.Init, "start": wasm.StartTrap, "nothing": wasm.Modes} {
		m, err := Load(t.Context(), module, Config{})
		if name == "start" {
			if err == nil {
				t.Errorf("%s: loaded", name)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			l := anotherLease(t, m)
			if got := said(l, 0); got == "" {
				t.Error(got)
			}
			l.in.Close(t.Context())
		}
		if m.last.Load().maker.HasImage() {
			t.Errorf("%s: there is an image", name)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Hammer: instances of an image are made, run, trap and are closed at once, while it is
// dropped and made again. All memory is given back.
func TestImage_Hammer(t *testing.T) {
	inThisProcess(t)
	budget := share.NewBudget(64<<20, 0)
	m := loaded(t, randomProgram(rand.New(rand.NewPCG(1, 1))), Config{Process: Process{Budget: budget}, Concurrency: 4})
	g := m.last.Load()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				in, err := g.newInstance(context.Background(), g.settings.Load())
				if err != nil {
					t.Error(err)
					return
				}
				l := &lease{rev: g, in: in}
				said(l, byte(i))
				if l.in != nil {
					l.in.Close(context.Background())
				}
				if i%50 == 0 {
					g.maker.ReleaseImage()
				}
			}
		})
	}
	wg.Wait()
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	used(t, budget, 0)
	if n := m.Memory(); n != 0 {
		t.Errorf("%d bytes are counted", n)
	}
}

// A module says why it has no image: at once where it cannot have one, and else when the
// second instance was made.
func TestNoImage_SaysWhy(t *testing.T) {
	inThisProcess(t)
	for name, tc := range map[string]struct {
		module   []byte
		cfg      Config
		at, then string
	}{
		"image":  {randomProgram(rand.New(rand.NewPCG(1, 1))), Config{}, "", ""},
		"tables": {wasm.Tables, Config{}, "changes a table", "changes a table"},
		"random": {wasm.Init, Config{}, "", "random"},
	} {
		m := loaded(t, tc.module, tc.cfg)
		for _, want := range []string{tc.at, tc.then} {
			if got := fmt.Sprint(m.NoImage()); want == "" && got != "<nil>" || !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
			anotherLease(t, m)
		}
	}
}
