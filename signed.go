// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"cmp"
	"slices"

	"github.com/wasmctl/wasmctl/host/oci/signature"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/engine"
)

// Signed is a Module with a proof of its signatures.
type Signed interface {
	Module
	// Proof returns a signature.Proof in JSON, or nil. It is called after Read. A proof for
	// another module has no effect.
	Proof() []byte
}

// provenBytes are the bytes of a module with a proof of its signatures.
type provenBytes struct {
	bytesModule

	proof []byte
}

// Proof implements Signed.
func (b provenBytes) Proof() []byte { return b.proof }

// namedBytes are the bytes of a module whose origin is known.
type namedBytes struct {
	provenBytes

	from string
}

// String implements Module.
func (b namedBytes) String() string { return b.from }

// shadow is a module that shadows the live one, for several requests.
type shadow struct {
	signers []string
	users   int
}

// Signers returns the fingerprints of the keys that have signed a module with a digest,
// according to the module's proof; nil if it has no proof.
func Signers(m Module, digest string) ([]string, error) {
	s, ok := m.(Signed)
	if !ok || s.Proof() == nil {
		return nil, nil
	}
	proof, err := signature.ParseProof(s.Proof())
	if err != nil {
		return nil, err
	}
	return proof.Signers(digest)
}

// proven returns the fingerprints of the keys that have signed the module with a digest,
// according to its proof.
func (c *Controller) proven(m Module, digest string) []string {
	signers, err := Signers(m, digest)
	if err != nil {
		c.log.Warn("the module is treated as unsigned: its proof is invalid", "module", m.String(), "reason", err.Error())
	}
	return signers
}

// signers returns the fingerprints of the keys that have signed the module with a digest.
// Each proof that it came with counts, because a refused swap may have brought an
// additional one.
func (c *Controller) signers(digest string) []string {
	c.modules.mu.Lock()
	defer c.modules.mu.Unlock()
	all := slices.Clone(c.modules.byDigest[digest].signers)
	if g := c.modules.shadows[digest]; g != nil {
		all = append(all, g.signers...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// known registers the signers of a module with a digest until forget is called.
func (c *Controller) known(m Module, digest string) (forget func()) {
	signers := c.proven(m, digest)
	if signers == nil {
		return func() {}
	}
	c.modules.mu.Lock()
	defer c.modules.mu.Unlock()
	g := c.modules.shadows[digest]
	if g == nil {
		g = &shadow{}
		c.modules.shadows[digest] = g
	}
	g.signers = append(g.signers, signers...)
	g.users++
	return func() {
		c.modules.mu.Lock()
		defer c.modules.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(c.modules.shadows, digest)
		}
	}
}

// engineOptions returns the options of the next engine.
func (c *Controller) engineOptions(o *ControllerOptions, m Module) (engine.Options, error) {
	out, err := o.engine(m)
	out.Tenant = cmp.Or(o.Tenant, share.OwnTenant(c.Name()))
	out.Signed.Signers, out.OnResult, out.Secrets = c.signers, c.results.publish, &c.secrets
	return out, err
}
