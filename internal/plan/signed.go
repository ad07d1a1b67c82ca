// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// Signed has the signers of modules and the keys that must have signed them.
type Signed struct {
	// Signers returns the fingerprints of the keys that have signed the module with a
	// digest. If nil, no module is signed.
	Signers func(digest string) []string
	// By are fingerprints of keys, one of which must have signed each module. If empty,
	// unsigned modules are accepted.
	By []string
}

// check returns the signers of a module, and an error if none of the required keys has
// signed it.
func (s *Signed) check(digest string) (signers []string, err error) {
	if s.Signers != nil {
		signers = s.Signers(digest)
	}
	isSigner := func(by string) bool { return slices.Contains(signers, by) }
	if len(s.By) > 0 && !slices.ContainsFunc(s.By, isSigner) {
		err = failure.Denied.Wrap(fmt.Errorf("module.verify: the module %s is not signed with a key that the controller was started with: %s; want a signature by %s; name the module by its reference in a registry, and give the public key",
			digest, signedBy(signers), listed(s.By)))
	}
	return signers, err
}

// boundTo describes the modules that documents are bound to, if they are bound to other
// modules than the one with this digest and these signers; otherwise it is empty.
func boundTo(others grant.Bound, digest string, signers []string) string {
	var texts []string
	if len(others.Digests) > 0 {
		texts = append(texts, fmt.Sprintf("bound to digest %s, and the module has %s; add this digest to the document, or run the module that is meant",
			listed(others.Digests), digest))
	}
	if len(others.Signers) > 0 {
		texts = append(texts, fmt.Sprintf("bound to signer %s, and the module %s is %s; sign it with that key, name it by its reference in a registry, and give the public key to verify it with",
			listed(others.Signers), digest, signedBy(signers)))
	}
	return strings.Join(texts, "; ")
}

func signedBy(signers []string) string {
	if len(signers) == 0 {
		return "not known to be signed"
	}
	return "signed by " + listed(signers)
}

// maxListed is the number of digests or signers that an error lists.
const maxListed = 5

// listed joins digests without duplicates.
func listed(list []string) string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	if n := len(list) - maxListed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:maxListed], ", "), n)
	}
	return strings.Join(list, ", ")
}
