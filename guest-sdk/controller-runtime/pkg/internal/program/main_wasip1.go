package program

import (
	"os"
	_ "unsafe" // for go:linkname

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// mainMain is the program's main function. The module is a library to the host,
// so Go does not run it.
//
//go:linkname mainMain main.main
func mainMain()

func init() {
	wasmctl.RegisterFunc(func() (wasmctl.Reconciler, error) { return load(mainMain, os.Args[0]) })
}
