// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var docFlag = regexp.MustCompile(`(^|[^-\w])--([a-z][a-z0-9-]*)`)

// othersFlags are the flags of other programs in the documentation.
var othersFlags = strings.Fields("apiserver-flag data-dir exit-on-stdin-close no-controllers port unsafe-no-fsync v" + // devcluster
	" enable-admission-plugins shutdown-watch-termination-grace-period" + // kube-apiserver
	" bump-revision mark-compacted" + // etcdutl
	" features lib no-default-features open precise release target" + // cargo
	" cascade force-conflicts from-file hard resource resource-name server-side show-managed-fields type verb" + // kubectl
	" create-namespace no-hooks set take-ownership" + // helm
	" check ignore-missing manifest-url remote-name-all" + // sha256sum, krew, curl
	" initial-memory" + // wasm-ld
	" include" + // grep
	" from-oci-layout" + // oras
	" insecure-ignore-tlog tlog-upload use-signing-config" + // cosign
	" default-image watch-nodes zk-operator" + // operators
	" trusted-root verify-identity verify-issuer") // wasmctl-keyless

// TestDocs_FlagsExist: each flag in the documentation belongs to wasmctl or is listed in othersFlags.
func TestDocs_FlagsExist(t *testing.T) {
	known := map[string]bool{"help": true}
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(newCmdRoot(streams{}))
	n := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "target"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		page, err := os.ReadFile(path)
		for _, m := range docFlag.FindAllStringSubmatch(string(page), -1) {
			name := m[2]
			some := strings.HasSuffix(name, "-") && beginsOne(known, name)
			if n++; !known[name] && !some && !slices.Contains(othersFlags, name) {
				t.Errorf("%s: there is no --%s", path, name)
			}
		}
		return err
	})
	if err != nil || n < 200 {
		t.Errorf("%d flags are named, %v", n, err)
	}
}

func beginsOne(known map[string]bool, prefix string) bool {
	for name := range known {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
