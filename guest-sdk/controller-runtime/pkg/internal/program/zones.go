//go:build wasmctl_tzdata

package program

// wasmctl build sets the tag if the program looks up time zones by name.
import _ "time/tzdata"
