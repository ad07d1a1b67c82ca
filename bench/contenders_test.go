// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// job is the task of a contender.
type job struct {
	kubeconfig, namespace, resource string

	controllers int    // number of identical controllers in its process; 0 means one
	logRuns     bool   // log each reconcile, as JSON
	seldom      bool   // read its metrics rarely, because that takes the contender's time
	memo        string // folder for --memo; only for wasmctl
}

// contender is a controller: a program that serves its metrics at an address.
type contender struct {
	name    string
	command func(j job, metrics string) *exec.Cmd
}

// programs builds controller-runtime's peer, and returns one contender for each of the given ways of caching objects.
func programs(b *testing.B, ways ...string) (all []contender) {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "peer")
	if out, err := exec.Command("go", "build", "-o", binary, "./peer").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	for _, way := range ways {
		all = append(all, contender{"controller-runtime, " + way, func(j job, metrics string) *exec.Cmd {
			return exec.Command(binary, "-cache", way, "-kubeconfig", j.kubeconfig, "-namespace", j.namespace, "-for", j.resource,
				"-metrics-address", metrics, "-controllers", fmt.Sprint(max(j.controllers, 1)), fmt.Sprintf("-log-runs=%t", j.logRuns))
		}})
	}
	return all
}

// kubeRS is a controller on kube-rs, which the Makefile builds.
var kubeRS = contender{"kube-rs", func(j job, metrics string) *exec.Cmd {
	return exec.Command("../bin/bench/kube-rs", "--kubeconfig", j.kubeconfig, "--namespace", j.namespace, "--for", j.resource,
		"--metrics-address", metrics, "--controllers", fmt.Sprint(max(j.controllers, 1)))
}}

// emptyModule is wasmctl with a module that does nothing.
var emptyModule = contender{"wasmctl", func(j job, metrics string) *exec.Cmd {
	return wasmctlCommand(j, metrics, "../testdata/wasm/empty.wasm", "--for", j.resource)
}}

// module returns wasmctl with a module in a language: the one that reads three fields or, for generators, the example.
// file is the suffix of the modules' file names.
func module(b *testing.B, language, file string) contender {
	b.Helper()
	copies := filepath.Join(b.TempDir(), language)
	return contender{"wasmctl, " + language, func(j job, metrics string) *exec.Cmd {
		if j.resource == generators.Resource {
			return wasmctlCommand(j, metrics, "../bin/examples/configmapgenerator"+file, "--grant-manifest")
		}
		wasm := "../bin/bench/guest" + file
		if j.controllers > 1 {
			return wasmctlCommand(j, metrics, "-f", distinct(b, wasm, j, filepath.Join(copies, fmt.Sprint(j.controllers))))
		}
		return wasmctlCommand(j, metrics, wasm, "--grant-manifest", "--for", j.resource)
	}}
}

func wasmctlCommand(j job, metrics string, args ...string) *exec.Cmd {
	args = append([]string{"run", "--kubeconfig", j.kubeconfig, "--socket", "none", "--metrics-address", metrics}, args...)
	if j.controllers <= 1 {
		args = append(args, "-n", j.namespace, "--trigger-on-signal", "USR1")
	}
	if j.logRuns {
		args = append(args, "--log-format", "json")
	}
	if j.memo != "" {
		args = append(args, "--memo", j.memo)
	}
	return exec.Command("../bin/wasmctl", args...)
}

// distinct writes equivalent modules into a folder, and returns the file of controllers that names them. An additional
// section makes each a different module.
func distinct(b *testing.B, module string, j job, dir string) string {
	b.Helper()
	wasm, err := os.ReadFile(module)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			b.Fatal(err)
		}
		return path
	}
	file := fmt.Sprintf("apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {for: %s, namespaces: %s, grant: {manifest: true}}\ncontrollers:\n", j.resource, j.namespace)
	for i := range j.controllers {
		section := append([]byte{0, 6, 1, 'n'}, binary.LittleEndian.AppendUint32(nil, uint32(i))...)
		name := fmt.Sprintf("module-%03d", i)
		file += fmt.Sprintf("- {name: %s, module: %s}\n", name, write(name+".wasm", slices.Concat(wasm, section)))
	}
	return write("controllers.yaml", []byte(file))
}

// allContenders returns all available contenders, wasmctl with Rust first, and the reasons for the missing ones.
func allContenders(b *testing.B) (all []contender, skipped []string) {
	b.Helper()
	for _, guest := range []struct{ language, file, missing string }{
		{"Rust", ".rust.wasm", "there is no Rust for WebAssembly"}, {"Go", ".wasm", "make bench-peers builds it"}, {"TinyGo", ".tinygo.wasm", "tinygo is not on PATH"},
	} {
		if _, err := os.Stat("../bin/bench/guest" + guest.file); err != nil {
			skipped = append(skipped, fmt.Sprintf("wasmctl, %s (%s)", guest.language, guest.missing))
			continue
		}
		all = append(all, module(b, guest.language, guest.file))
	}
	all = append(all, programs(b, "typed", "unstructured", "metadata")...)
	if _, err := os.Stat("../bin/bench/kube-rs"); err == nil {
		all = append(all, kubeRS)
	} else {
		skipped = append(skipped, "kube-rs (cargo is not on PATH, or older than 1.89)")
	}
	for _, text := range skipped {
		fmt.Fprintln(os.Stderr, "SKIPPED: "+text)
	}
	return all, skipped
}
