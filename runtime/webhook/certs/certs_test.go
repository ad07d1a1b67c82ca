// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// serve returns an Authority that serves a certificate.
func serve(t *testing.T, now time.Time) *Authority {
	t.Helper()
	a := New(Config{Replica: "pod-1", Hosts: []string{"hook.system.svc", "127.0.0.1"}})
	if changed, err := a.Renew(now); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if a.Ready() == nil {
		t.Error("ready before clients trust it")
	}
	if !a.Observe(Observation{Began: now, Ended: now, Alone: true}) || a.Ready() != nil {
		t.Fatal("not ready although nobody else is there")
	}
	return a
}

// handshake connects to a server that serves the certificates.
func handshake(t *testing.T, get func(*tls.ClientHelloInfo) (*tls.Certificate, error), client *tls.Config) error {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: get})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		conn, err := l.Accept()
		if err == nil {
			_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			_ = conn.Close()
		}
	})
	defer func() {
		_ = l.Close()
		serving.Wait()
	}()
	conn, err := (&tls.Dialer{Config: client}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err == nil {
		err = conn.Close()
	}
	return err
}

func pool(bundle []byte) *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(bundle)
	return p
}

// TestAuthority_ClientsVerifyItsCertificates by the published bundle, for each host, and for no other.
func TestAuthority_ClientsVerifyItsCertificates(t *testing.T) {
	a := serve(t, time.Now())
	for host, ok := range map[string]bool{"hook.system.svc": true, "127.0.0.1": true, "other.system.svc": false} {
		if err := handshake(t, a.GetCertificate, &tls.Config{RootCAs: pool(a.Published()), ServerName: host}); (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
	}
	if handshake(t, a.GetCertificate, &tls.Config{RootCAs: pool(serve(t, time.Now()).Published()), ServerName: "127.0.0.1"}) == nil {
		t.Error("the certificate of another replica is enough")
	}
	if handshake(t, New(Config{}).GetCertificate, &tls.Config{InsecureSkipVerify: true}) == nil {
		t.Error("a handshake without a certificate")
	}
}

// TestAuthority_OffersItsFirstCertificateAtOnce, because a client at a fixed URL that knows it need not wait until all others know it.
func TestAuthority_OffersItsFirstCertificateAtOnce(t *testing.T) {
	a := New(Config{Hosts: []string{"127.0.0.1"}})
	if _, err := a.Renew(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := handshake(t, a.GetCertificate, &tls.Config{RootCAs: pool(a.Published()), ServerName: "127.0.0.1"}); err != nil {
		t.Error(err)
	}
	if a.Ready() == nil {
		t.Error("ready before clients trust it")
	}
}

// TestAuthority_RenewsAtHalfOfTheValidity, and publishes both certificates until the new one is served.
func TestAuthority_RenewsAtHalfOfTheValidity(t *testing.T) {
	now := time.Now()
	a := serve(t, now)
	if got, want := a.Wake(now), now.Add(DefaultValidity/2); want.Sub(got).Abs() > time.Second {
		t.Errorf("wakes at %v, want %v", got, want)
	}
	if changed, _ := a.Renew(now.Add(DefaultValidity/2 - time.Minute)); changed {
		t.Error("renewed too early")
	}
	old, now := a.Published(), now.Add(DefaultValidity/2)
	if changed, _ := a.Renew(now); !changed || len(decode(a.Published())) != 2 || !bytes.HasPrefix(a.Published(), old) {
		t.Error("not renewed")
	}
	before, after := Observation{Bundles: [][]byte{a.Published(), old}}, Observation{Bundles: [][]byte{a.Published()}}
	for _, step := range []struct {
		after time.Duration
		o     Observation
		want  bool
	}{{0, before, false}, {time.Second, after, false}, {2 * time.Second, before, false}, {3 * time.Second, after, false}, {7 * time.Second, after, false}, {8 * time.Second, after, true}} {
		step.o.Began, step.o.Ended = now.Add(step.after), now.Add(step.after)
		if got := a.Observe(step.o); got != step.want {
			t.Errorf("after %v: served %v", step.after, got)
		}
	}
	if len(decode(a.Published())) != 1 || bytes.Equal(a.Published(), old) {
		t.Error("the old certificate is still published")
	}
}

// TestAuthority_RenewsAfterItsClockWasWrong, and replaces an expired certificate whatever is observed.
func TestAuthority_RenewsAfterItsClockWasWrong(t *testing.T) {
	now := time.Now()
	a := serve(t, now)
	if changed, _ := a.Renew(now.Add(-2 * skew)); !changed {
		t.Error("a certificate that is not valid yet remains")
	}
	now = now.Add(DefaultValidity)
	if changed, _ := a.Renew(now); !changed || !a.Observe(Observation{Began: now, Ended: now, Bundles: [][]byte{nil}}) {
		t.Error("an expired certificate is served")
	}
}

// TestBundle_IsBounded: the certificates of replicas take precedence, then the newest.
func TestBundle_IsBounded(t *testing.T) {
	now := time.Now()
	make := func(at time.Time) []byte {
		c, err := generate("pod", nil, at, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return encode(c.Leaf)
	}
	replica, oldest, expired := make(now.Add(-time.Minute)), make(now.Add(-2*time.Second)), make(now.Add(-2*time.Hour))
	existing := [][]byte{oldest, expired}
	for range maxBundle - 1 {
		existing = append(existing, make(now))
	}
	bundle := Leftovers{}.Bundle(now, time.Hour, [][]byte{replica}, existing)
	if n := len(decode(bundle)); n != maxBundle || !bytes.Contains(bundle, replica) || bytes.Contains(bundle, oldest) || bytes.Contains(bundle, expired) {
		t.Errorf("wrong bundle of %d certificates", n)
	}
	rand.Shuffle(len(existing), func(i, j int) { existing[i], existing[j] = existing[j], existing[i] })
	if !bytes.Equal(bundle, Leftovers{}.Bundle(now, time.Hour, [][]byte{replica}, existing)) {
		t.Error("the order matters")
	}
	if !Expired(now, expired) || Expired(now, replica) {
		t.Error("wrong about the expiry")
	}
}

// FuzzBundle: whatever others write into a record or a bundle, the result has only certificates of this package, each once.
func FuzzBundle(f *testing.F) {
	own, err := generate("pod", nil, time.Now(), time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	text := encode(own.Leaf)
	f.Add(text, slices.Concat(text, []byte("junk"), text))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), text[:40])
	f.Fuzz(func(t *testing.T, record, existing []byte) {
		bundle := Leftovers{}.Bundle(time.Now(), time.Hour, [][]byte{record, text}, [][]byte{existing})
		if list := decode(bundle); !bytes.Contains(bundle, text) || !bytes.Equal(bundle, encode(list...)) {
			t.Errorf("bundle %q", bundle)
		}
	})
}

// write stores a pair as the files of a directory.
func write(t *testing.T, dir string, c *tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for i, content := range [][]byte{encode(c.Leaf), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(filepath.Join(dir, files[i]), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDirectory_FollowsBothFiles, whichever is written first.
func TestDirectory_FollowsBothFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := NewDirectory(dir, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("no files, but no error")
	}
	pairs := make([]*tls.Certificate, 3)
	for i := range pairs {
		pairs[i], _ = generate(fmt.Sprint("pod-", i), []string{"hook.system.svc"}, time.Now(), time.Hour)
	}
	write(t, dir, pairs[0])
	d, err := NewDirectory(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	for _, c := range pairs {
		write(t, dir, c)
		for limit := time.Now().Add(time.Minute); ; {
			got, err := d.GetCertificate(nil)
			if err != nil || time.Now().After(limit) {
				t.Fatalf("the certificate was not read again: %v", err)
			}
			if bytes.Equal(got.Certificate[0], c.Certificate[0]) {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
