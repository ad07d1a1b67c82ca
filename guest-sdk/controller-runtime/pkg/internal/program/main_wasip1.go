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

// choose is nil before main has run.
var choose Choose

func init() {
	if err := prepare(linked); err != nil {
		panic(err)
	}
	wasmctl.RegisterFunc(func() (wasmctl.Reconciler, error) {
		if choose == nil {
			exportPrepare()
		}
		os.Args[0] = name()
		return choose(os.Args[0])
	})
}

// exportPrepare runs main until it starts the manager, which is the same for all controllers of
// the module: the host then makes instances of each of them that share it.
//
//go:wasmexport prepare_controllers
func exportPrepare() { choose = begin(mainMain) }
