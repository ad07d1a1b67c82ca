// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci/signature"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func signingKey(t testing.TB) *signature.PrivateKey {
	t.Helper()
	private, _, err := signature.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParsePrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// proofOf returns the proof that keys have signed a module.
func proofOf(t testing.TB, wasm []byte, keys ...*signature.PrivateKey) []byte {
	t.Helper()
	manifest := fmt.Appendf(nil, `{"layers":[{"digest":%q}]}`, load.DigestOf(wasm))
	var policy signature.Policy
	var candidates []signature.Candidate
	for _, k := range keys {
		bundle, err := signature.SignBundle(load.DigestOf(manifest), k)
		if err != nil {
			t.Fatal(err)
		}
		policy.Keys, candidates = append(policy.Keys, &k.Key), append(candidates, signature.Candidate{Bundle: bundle})
	}
	proof, _, err := policy.Prove(t.Context(), load.DigestOf(manifest), [][]byte{manifest}, candidates)
	if err != nil {
		t.Fatal(err)
	}
	content, err := proof.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestSigned_RightsFollowTheSigner: a grant that is bound to a signer applies to the
// modules that it has signed, at start, swap, canary and shadow, and through restarts and
// rollbacks. The Runtime checks the proof itself.
func TestSigned_RightsFollowTheSigner(t *testing.T) {
	r := newGuests(t)
	a, b := signingKey(t), signingKey(t)
	first, second := enginetest.Worse(enginetest.Good, 1), enginetest.Worse(enginetest.Good, 2)
	o := r.options("signed")
	documents, err := grant.Parse("g.yaml", fmt.Appendf(nil, "apiVersion: wasmctl.dev/v1\nkind: Grant\nsigners: %s\ncapabilities:\n- {resource: configmaps, verbs: [get, list, watch, patch]}\n", a.Fingerprint()))
	if err != nil {
		t.Fatal(err)
	}
	o.Grant, o.GrantFile, o.Documents = nil, "g.yaml", documents
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "bound to signer "+a.Fingerprint()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	proven := func(wasm, proof []byte) Module { return provenBytes{bytesModule{wasm}, proof} }
	for what, m := range map[string]Module{
		"nobody": Bytes(first), "another": proven(first, proofOf(t, first, b)), "for another module": proven(first, proofOf(t, second, a)), "no proof": proven(first, []byte("x")),
	} {
		_, err := r.Load(t.Context(), m, o)
		refused("start, signed by "+what, err)
	}
	c, err := r.Load(t.Context(), proven(first, proofOf(t, first, b, a)), o)
	if err != nil {
		t.Fatal(err)
	}
	both := []string{a.Fingerprint(), b.Fingerprint()}
	slices.Sort(both)
	service := r.Admin()
	live := func(digest string, signers ...string) {
		t.Helper()
		enginetest.Until(t, "it is live, and its signers are shown", func() bool {
			st := service.Status().Controllers[0]
			return st.Digest == digest && st.Phase == admin.PhaseRunning && slices.Equal(st.Signers, signers)
		})
	}
	live(load.DigestOf(first), both...)
	shadow := func(proof []byte) error {
		_, err := service.Shadow(t.Context(), "signed", second, admin.ShadowOptions{For: time.Millisecond, Proof: proof}, func(admin.Shadowed) error { return nil })
		return err
	}
	// The proof of another key comes last: the proof of a refused swap stays known.
	for _, by := range []struct {
		what  string
		proof []byte
	}{{"nobody", nil}, {"for another module", proofOf(t, first, a)}, {"another", proofOf(t, second, b)}} {
		what, proof := by.what, by.proof
		for _, canary := range []*admin.Canary{nil, {Share: "50%"}} {
			_, err := service.Swap(t.Context(), "signed", second, admin.SwapOptions{Proof: proof, Canary: canary})
			refused("swap, signed by "+what, err)
		}
		refused("shadow, signed by "+what, shadow(proof))
	}
	if err := shadow(proofOf(t, second, a)); err != nil {
		t.Errorf("shadow: %v", err)
	}
	_, err = service.Swap(t.Context(), "signed", second, admin.SwapOptions{})
	refused("after it was a shadow", err)
	if _, err := service.Swap(t.Context(), "signed", second, admin.SwapOptions{Proof: proofOf(t, second, a)}); err != nil {
		t.Fatal(err)
	}
	live(load.DigestOf(second), a.Fingerprint())
	c.Restart()
	enginetest.Until(t, "it has been restarted", func() bool { return c.Running() && service.Status().Controllers[0].Revision == 1 })
	live(load.DigestOf(second), a.Fingerprint())
	if _, err := service.Swap(t.Context(), "signed", first, admin.SwapOptions{Proof: proofOf(t, first, a)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Rollback(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	live(load.DigestOf(second), a.Fingerprint())
}

// TestSigned_MustBe: with keys to verify, a module without a signature by one of them does
// not run under any grant.
func TestSigned_MustBe(t *testing.T) {
	r := newGuests(t)
	private, public, err := signature.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := signature.ParsePrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := signingKey(t)
	wasm := enginetest.Worse(enginetest.Good, 1)
	o := r.options("must")
	o.Module.Verify = &v1alpha1.Verify{Keys: []string{string(public)}}
	for _, m := range []Module{Bytes(wasm), provenBytes{bytesModule{wasm}, proofOf(t, wasm, b)}} {
		if _, err := r.Load(t.Context(), m, o); err == nil || !strings.Contains(err.Error(), "module.verify: the module "+load.DigestOf(wasm)) {
			t.Error(err)
		}
	}
	c, err := r.Load(t.Context(), provenBytes{bytesModule{wasm}, proofOf(t, wasm, a)}, o)
	if err != nil {
		t.Fatal(err)
	}
	next := enginetest.Worse(enginetest.Good, 2)
	if _, err := c.Swap(t.Context(), Bytes(next), SwapOptions{}); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "module.verify: the module "+load.DigestOf(next)) {
		t.Error(err)
	}
}

// TestSigned_BytesThatWereKeptAreNotOfTheirModule: a restart that runs other bytes than its
// module now has does not adopt that module's signers.
func TestSigned_BytesThatWereKeptAreNotOfTheirModule(t *testing.T) {
	r := newGuests(t)
	key := signingKey(t)
	wasm, kept := []byte("new"), []byte("kept")
	c := newController(r.Runtime, "x", nil)
	m := provenBytes{bytesModule{wasm}, proofOf(t, wasm, key)}
	c.remember(r.storeModule(m, kept, load.DigestOf(kept), nil), kept)
	if got := c.signers(load.DigestOf(kept)); got != nil {
		t.Errorf("signed by %v", got)
	}
	c.remember(m, wasm)
	known, _ := c.modules.get(load.DigestOf(wasm))
	c.remember(known, wasm)
	if got := c.signers(load.DigestOf(wasm)); !slices.Equal(got, []string{key.Fingerprint()}) {
		t.Errorf("signed by %v", got)
	}
}
