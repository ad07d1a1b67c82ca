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

// linked is what wasmctl build was told about main, as JSON in base64. It sets it
// by the linker.
var linked string

func init() {
	if err := prepare(linked); err != nil {
		panic(err)
	}
	wasmctl.RegisterFunc(func() (wasmctl.Reconciler, error) { return load(mainMain, os.Args[0]) })
}
