// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"oras.land/oras-go/v2/registry"

	"github.com/wasmctl/wasmctl/internal/failure"
)

// Scheme is the prefix of references to a registry in places that also accept files.
const Scheme = "oci://"

// latest is the tag of a reference without one.
const latest = "latest"

// IsRef reports whether a text is a reference, and not the path of a file.
func IsRef(s string) bool { return strings.HasPrefix(s, Scheme) }

// Ref identifies a module in a registry. It is a value: resolving it returns another one.
type Ref struct {
	// Host is the host of the registry, with an optional port.
	Host string
	// Repository is the path on the host.
	Repository string
	// Tag can move. It is "" if there is a range, or only a digest.
	Tag string
	// Range selects the highest version among the tags, such as ^1.2.
	Range string
	// Digest, if not "", is authoritative: the digest of the manifest, sha256:<hex>.
	Digest string
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Parse reads oci://HOST/REPOSITORY[:TAG][@sha256:HEX], with or without oci://. A
// reference without tag and digest means the tag latest. TAG can be a range of
// versions: ^1.2, ~1.2.3, 1.x. The error matches failure.Usage.
func Parse(s string) (Ref, error) {
	ref, err := parse(strings.TrimPrefix(s, Scheme))
	if err != nil {
		return Ref{}, failure.Usage.Wrap(fmt.Errorf("reference[%s]: %w; want oci://HOST/REPOSITORY:TAG, or @sha256:HEX", s, err))
	}
	return ref, nil
}

func parse(s string) (Ref, error) {
	var r Ref
	name, digest, pinned := strings.Cut(s, "@")
	if pinned && !digestForm.MatchString(digest) {
		return r, fmt.Errorf("digest %q: want sha256: and 64 lower-case hexadecimal digits", digest)
	}
	r.Digest = digest
	var found bool
	if r.Host, r.Repository, found = strings.Cut(name, "/"); !found {
		return r, errors.New("names no repository")
	}
	if i := strings.LastIndexByte(r.Repository, ':'); i >= 0 {
		r.Repository, r.Tag = r.Repository[:i], r.Repository[i+1:]
		if r.Tag == "" {
			return r, errors.New("the tag is empty")
		}
	}
	if isRange(r.Tag) {
		r.Tag, r.Range = "", r.Tag
		if _, err := parseRange(r.Range); err != nil {
			return r, err
		}
	}
	if r.Tag == "" && r.Range == "" && !pinned {
		r.Tag = latest
	}
	return r, r.validate()
}

// validate checks the parts by the rules of the distribution specification.
func (r Ref) validate() error {
	at := registry.Reference{Registry: r.Host, Repository: r.Repository, Reference: r.Tag}
	if err := at.ValidateRegistry(); err != nil || r.Host == "" || strings.ContainsAny(r.Host, "@?#\\ ") {
		return fmt.Errorf("host %q is none", r.Host)
	}
	if err := at.ValidateRepository(); err != nil {
		return fmt.Errorf("repository %q: want lower-case letters, digits and . _ - between slashes", r.Repository)
	}
	if err := at.ValidateReferenceAsTag(); r.Tag != "" && err != nil {
		return fmt.Errorf("tag %q: want up to 128 letters, digits and . _ -", r.Tag)
	}
	return nil
}

// String returns the reference in the form that Parse reads.
func (r Ref) String() string {
	s := Scheme + r.repository()
	if tag := cmp.Or(r.Range, r.Tag); tag != "" {
		s += ":" + tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// Name returns the name of a controller of this module without a name of its own.
func (r Ref) Name() string { return path.Base(r.Repository) }

// Pinned reports whether the reference always names the same bytes.
func (r Ref) Pinned() bool { return r.Digest != "" }

// At returns the reference with the digest to which it was resolved.
func (r Ref) At(digest string) Ref {
	r.Digest = digest
	return r
}

func (r Ref) repository() string { return r.Host + "/" + r.Repository }

// moving returns the reference without digest, for a registry to resolve. It is "" if there is only
// a digest.
func (r Ref) moving() string {
	if tag := cmp.Or(r.Range, r.Tag); tag != "" {
		return r.repository() + ":" + tag
	}
	return ""
}
