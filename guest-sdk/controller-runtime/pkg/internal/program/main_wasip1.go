// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	_ "unsafe" // for go:linkname

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// mainMain is the program's main function. For the host, the module is a
// library, so the Go runtime does not call it.
//
//go:linkname mainMain main.main
func mainMain()

// linked has the settings that wasmctl build was given for main, as JSON in
// base64. The build sets it through the linker.
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

// exportPrepare runs main until it starts the manager. This part is the same
// for all controllers of the module, so the host makes the instances of all of
// them from the result.
//
//go:wasmexport prepare_controllers
func exportPrepare() { choose = begin(mainMain) }
