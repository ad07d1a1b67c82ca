// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_tzdata

package program

// wasmctl build sets the tag if the program looks up time zones by name.
import _ "time/tzdata"
