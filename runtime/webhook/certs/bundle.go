// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"slices"
	"time"
)

// Leftovers has the certificates that clients trust although no replica has published them, and since when that is known. They remain for
// some time: their replica may still be answering its last requests, or somebody has deleted the record of the replicas, which will publish
// them again.
type Leftovers map[string]time.Time

// Bundle returns the certificates that clients must trust, as PEM: those of the replicas, and those of the existing bundles that are
// leftovers for less than grace. Expired ones are removed. If there are too many, the newest remain, and those of replicas take precedence.
// The result depends only on the set of certificates, not on their order.
func (l Leftovers) Bundle(now time.Time, grace time.Duration, replicas, existing [][]byte) []byte {
	published, used := unexpired(now, replicas), unexpired(now, existing)
	for raw := range l {
		if published[raw] != nil || used[raw] == nil {
			delete(l, raw)
		}
	}
	for raw := range used {
		if _, known := l[raw]; published[raw] == nil && !known {
			l[raw] = now
		}
		if published[raw] != nil || now.Sub(l[raw]) >= grace {
			delete(used, raw)
		}
	}
	list := append(newest(published), newest(used)...)
	list = list[:min(len(list), maxBundle)]
	slices.SortFunc(list, func(a, b *x509.Certificate) int { return bytes.Compare(a.Raw, b.Raw) })
	return encode(list...)
}

// unexpired returns the certificates of bundles that have not expired.
func unexpired(now time.Time, bundles [][]byte) map[string]*x509.Certificate {
	found := map[string]*x509.Certificate{}
	for _, b := range bundles {
		for _, c := range decode(b) {
			if now.Before(c.NotAfter) {
				found[string(c.Raw)] = c
			}
		}
	}
	return found
}

// Expired reports whether none of the certificates of a bundle is of use any more.
func Expired(now time.Time, bundle []byte) bool { return len(unexpired(now, [][]byte{bundle})) == 0 }

// AllExpired reports whether a bundle has certificates of this package, and all of them have expired.
func AllExpired(now time.Time, bundle []byte) bool {
	return len(decode(bundle)) > 0 && Expired(now, bundle)
}

// newest returns the certificates, the newest first.
func newest(of map[string]*x509.Certificate) []*x509.Certificate {
	list := make([]*x509.Certificate, 0, len(of))
	for _, c := range of {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *x509.Certificate) int {
		return cmp.Or(b.NotBefore.Compare(a.NotBefore), bytes.Compare(a.Raw, b.Raw))
	})
	return list
}
