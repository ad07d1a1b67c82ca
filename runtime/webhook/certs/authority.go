// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"cmp"
	"crypto/tls"
	"sync/atomic"
	"time"
)

// Defaults of Config.
const (
	DefaultValidity = 48 * time.Hour
	DefaultMargin   = 5 * time.Second
)

// Config configures an Authority.
type Config struct {
	// Replica names this replica, in certificates.
	Replica string
	// Hosts are the DNS names and IP addresses under which clients connect.
	Hosts []string
	// Validity is how long a certificate is valid; 0 means DefaultValidity. Renew is the age at which it is replaced, which must be more than Margin; 0 means half of
	// the validity.
	Validity, Renew time.Duration
	// Margin is how long clients need to use a bundle after it was written; 0 means DefaultMargin.
	Margin time.Duration
}

// Authority makes the certificates of one replica, and decides which one is served. It does no I/O: its caller writes the bundles, and reports
// them. One goroutine may call its methods at a time, except for GetCertificate and Ready.
//
// A new certificate is first published, then written into every bundle. After these were observed to have it, and again Margin later, it is
// served, and the one before is published no more.
type Authority struct {
	cfg     Config
	serving *tls.Certificate
	next    *tls.Certificate // to be served; nil if there is none
	seen    time.Time        // when next was first observed in all bundles; zero if it is not there

	served  atomic.Pointer[tls.Certificate] // is serving
	offered atomic.Pointer[tls.Certificate] // is serving, or the first next
}

// New returns an Authority without certificates.
func New(cfg Config) *Authority {
	cfg.Validity = cmp.Or(cfg.Validity, DefaultValidity)
	cfg.Renew = cmp.Or(cfg.Renew, cfg.Validity/2)
	cfg.Margin = cmp.Or(cfg.Margin, DefaultMargin)
	return &Authority{cfg: cfg}
}

// GetCertificate returns the certificate to serve. It is for tls.Config. The first certificate is served at once: clients that know it already
// succeed, and the others would fail without it, too. So a process that is called at a fixed URL is back as soon as the bundles have it.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := a.offered.Load(); c != nil {
		return c, nil
	}
	return nil, errNone
}

// Ready returns an error until clients trust a certificate of this replica.
func (a *Authority) Ready() error {
	if a.served.Load() == nil {
		return errNone
	}
	return nil
}

// Renew makes a new certificate if the newest is due. It reports whether Published has changed.
func (a *Authority) Renew(now time.Time) (changed bool, err error) {
	if newest := cmp.Or(a.next, a.serving); newest != nil && !a.due(newest, now) {
		return false, nil
	}
	c, err := generate(a.cfg.Replica, a.cfg.Hosts, now, a.cfg.Validity)
	if err != nil {
		return false, err
	}
	a.next, a.seen = c, time.Time{}
	if a.serving == nil {
		a.offered.Store(c)
	}
	return true, nil
}

// due reports whether a certificate must be replaced: it is old, or the clock was turned back to before it was made.
func (a *Authority) due(c *tls.Certificate, now time.Time) bool {
	age := a.cfg.Validity - c.Leaf.NotAfter.Sub(now)
	return age >= a.cfg.Renew || age < -skew
}

// Published returns the certificates that clients must trust because of this replica, as PEM.
func (a *Authority) Published() (out []byte) {
	for _, c := range []*tls.Certificate{a.serving, a.next} {
		if c != nil {
			out = append(out, encode(c.Leaf)...)
		}
	}
	return out
}

// Observation is the state of all bundles.
type Observation struct {
	// Began and Ended are the times before the first bundle was read, and after the last one was read.
	Began, Ended time.Time
	// Bundles are those that clients use.
	Bundles [][]byte
	// Alone reports that there are no bundles, and that there is no other replica that could write one without knowing of this replica.
	Alone bool
}

// Observe reports what clients trust. It reports whether Published has changed, because another certificate is served now.
func (a *Authority) Observe(o Observation) (changed bool) {
	if a.next == nil {
		return false
	}
	for _, b := range o.Bundles {
		if !contains(b, a.next.Leaf) {
			a.seen = time.Time{}
			return a.expired(o.Ended) && a.serve()
		}
	}
	if a.seen.IsZero() {
		a.seen = o.Ended
	}
	return (o.Alone || o.Began.Sub(a.seen) >= a.cfg.Margin || a.expired(o.Ended)) && a.serve()
}

// expired reports whether the served certificate is of no use to anybody.
func (a *Authority) expired(now time.Time) bool {
	return a.serving != nil && !now.Before(a.serving.Leaf.NotAfter)
}

func (a *Authority) serve() bool {
	a.serving, a.next, a.seen = a.next, nil, time.Time{}
	a.served.Store(a.serving)
	a.offered.Store(a.serving)
	return true
}

// Wake returns when the caller must observe the bundles, at the latest.
func (a *Authority) Wake(now time.Time) time.Time {
	switch {
	case a.next == nil && a.serving == nil:
		return now
	case a.next == nil:
		return a.serving.Leaf.NotAfter.Add(a.cfg.Renew - a.cfg.Validity)
	case a.seen.IsZero():
		return now.Add(min(time.Second, a.cfg.Margin))
	}
	return a.seen.Add(a.cfg.Margin)
}
