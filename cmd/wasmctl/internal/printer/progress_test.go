// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestProgress_IsOneLineOnATerminalOnly: on a terminal, a long task has one line, which is removed before
// lines of the log and at the end. A file or pipe gets nothing of it.
func TestProgress_IsOneLineOnATerminalOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal, pipe bytes.Buffer
		both := []*Progress{{w: &terminal, commands: &terminal}, NewProgress(&pipe)}
		for _, p := range both {
			end := p.Start("compiling")
			<-time.After(2500 * time.Millisecond)
			if _, err := p.Write([]byte("log\n")); err != nil {
				t.Fatal(err)
			}
			other := p.Start("checking")
			<-time.After(time.Second)
			end()
			other()
			if _, err := p.Write([]byte("end\n")); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}
		const clear = "\r\x1b[K"
		want := clear + "compiling, 1s" + clear + "compiling, 2s" + clear + "log\n" + clear + "compiling, 3s, and 1 more"
		if got := terminal.String(); !bytes.HasPrefix([]byte(got), []byte(want)) || !bytes.HasSuffix([]byte(got), []byte(clear+"end\n")) {
			t.Errorf("the terminal gets %q, want %q and the end", got, want)
		}
		if diff := cmp.Diff("log\nend\n", pipe.String()); diff != "" {
			t.Error(diff)
		}
	})
}
