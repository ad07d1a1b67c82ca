// SPDX-License-Identifier: Apache-2.0

// Command wasmctl-keyless verifies that an identity has signed a module in a registry, and prints
// the module's reference with its digest, for wasmctl to run.
package main

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/keyless"
	"github.com/wasmctl/wasmctl/host/oci/signature"
)

const usage = `usage: wasmctl-keyless --trusted-root FILE --verify-identity TEXT --verify-issuer TEXT oci://HOST/REPOSITORY[:TAG]

Prints the reference with the digest of the manifest, if the identity has signed it:
  wasmctl run "$(wasmctl-keyless ... oci://ghcr.io/acme/greeter:1.2.0)"

Flags:
`

// errUsage is the error of wrong flags, which were already explained.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "wasmctl-keyless: %v\n", err)
		os.Exit(1)
	}
}

// options are the options of the command line.
type options struct {
	root     string
	keyless  keyless.Options
	insecure []string
	roots    *x509.CertPool // nil for the system's
	module   string
}

func parse(args []string, errOut io.Writer) (o options, err error) {
	f := flag.NewFlagSet("wasmctl-keyless", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.Usage = func() {
		_, _ = fmt.Fprint(errOut, usage)
		f.PrintDefaults()
	}
	f.StringVar(&o.root, "trusted-root", "", "`file` that names the services of sigstore to trust: trusted_root.json")
	f.StringVar(&o.keyless.Identity, "verify-identity", "", "subject of the certificate that must have signed; * is any `text`")
	f.StringVar(&o.keyless.Issuer, "verify-issuer", "", "`URL` of the service that authenticated the identity; * is any text")
	f.Func("insecure-registry", "allow plain HTTP, and TLS without verification, for the registry at this `host`[:port]; repeatable", func(host string) error {
		o.insecure = append(o.insecure, host)
		return nil
	})
	f.Func("registry-ca", "trust registries whose certificate is signed by a certificate in this PEM `file`, in addition to the system's; repeatable", func(file string) error {
		pem, err := os.ReadFile(file)
		if err == nil {
			o.roots, err = oci.AddRoots(o.roots, pem)
		}
		return err
	})
	if f.Parse(args) != nil {
		return o, errUsage
	}
	if f.NArg() != 1 || o.root == "" {
		f.Usage()
		return o, errUsage
	}
	o.module = f.Arg(0)
	return o, nil
}

// run verifies a module, and prints its reference.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	o, err := parse(args, errOut)
	if err != nil {
		return err
	}
	ref, err := oci.Parse(o.module)
	if err != nil {
		return err
	}
	if o.keyless.TrustedRoot, err = os.ReadFile(o.root); err != nil {
		return fmt.Errorf("--trusted-root: %w", err)
	}
	v, err := keyless.New(o.keyless)
	if err != nil {
		return err
	}
	signed := &signers{Verifier: v}
	policy := v.Policy()
	policy.Keyless = signed
	registry := oci.Options{Insecure: o.insecure, Roots: o.roots, Credentials: oci.UserLogin(os.Getenv).Credentials}
	registry.Require(policy)
	a, err := oci.New(registry).Pull(ctx, ref)
	if err != nil {
		return err
	}
	for _, by := range signed.list {
		_, _ = fmt.Fprintf(errOut, "signed by %q\n", by)
	}
	_, err = fmt.Fprintln(out, a.Ref)
	return err
}

// signers records the signers.
type signers struct {
	*keyless.Verifier

	list []string
}

var _ signature.Keyless = (*signers)(nil)

// VerifyKeyless implements signature.Keyless.
func (s *signers) VerifyKeyless(ctx context.Context, digest string, bundle []byte) (string, error) {
	signer, err := s.Verifier.VerifyKeyless(ctx, digest, bundle)
	if err == nil {
		s.list = append(s.list, signer)
	}
	return signer, err
}
