// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// Each instance reads the files of its module by itself, wherever it runs.
func TestWithFiles_InstancesReadThem(t *testing.T) {
	module, err := load.WithFiles(statefulGuest(t), map[string][]byte{"/etc/words": []byte("\x01\x02\x03\x04"), "/etc/other": []byte("12345")})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(load.Inspect(t.Context(), module).Files); got != "[{/etc/other 5} {/etc/words 4}]" {
		t.Errorf("inspect has %s", got)
	}
	m := loaded(t, module, Config{})
	for range 3 {
		l := anotherLease(t, m)
		for i, want := range []uint32{0x0102, 0x0304, 0, 9} {
			got, want := said(l, []byte{6, 6, 6, 7}[i]), "requeue after "+(time.Duration(want)*time.Millisecond).String()
			if got != want {
				t.Errorf("read %d: %s, want %s", i, got, want)
			}
		}
	}
}

// What is no tree of files, or is too large, is neither written nor loaded.
func TestWithFiles_IsBounded(t *testing.T) {
	for name, files := range map[string]map[string][]byte{
		"path": {"/etc/../x": nil}, "both": {"a": nil, "a/b": nil}, "size": {"a": make([]byte, abi.MaxFiles)},
	} {
		if _, err := load.WithFiles(wasm.Empty, files); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	twice, err := load.WithFiles(wasm.Empty, map[string][]byte{"a": nil})
	if err != nil {
		t.Fatal(err)
	}
	again, err := load.WithFiles(twice, map[string][]byte{"b": nil})
	if err != nil || len(again) != len(twice) {
		t.Errorf("files are replaced: %v, %d bytes of %d", err, len(again), len(twice))
	}
	for problem, payload := range map[string]string{"appears twice": "\x02\x01a\x00\x01a\x00", "truncated": "\x01\x01a\x05", "is not a path": "\x01\x02/a\x00"} {
		module := withSection(wasm.Empty, abi.FilesSection, []byte(payload))
		if _, err := Load(t.Context(), module, Config{}); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", problem, err)
		}
	}
}
