package flags

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl"
)

// BindMemo adds --memo.
func BindMemo(f *pflag.FlagSet, memo *string) {
	f.StringVar(memo, "memo", wasmctl.MemoOff, "Skip runs while nothing that the last one read has changed, for modules that depend on nothing else: off, memory, or a `directory` to keep this for restarts")
}

// CheckMemo checks --memo. A directory has a slash, so that a word that is misspelled
// is not taken for one.
func CheckMemo(memo string) error {
	if memo == "" || memo == wasmctl.MemoOff || memo == wasmctl.MemoMemory || MemoDir(memo) != "" {
		return nil
	}
	return fmt.Errorf("--memo %q: want off, memory, or a directory, such as ./%s", memo, memo)
}

// MemoDir returns the directory that --memo names, or "".
func MemoDir(memo string) string {
	if strings.ContainsRune(memo, os.PathSeparator) {
		return memo
	}
	return ""
}
