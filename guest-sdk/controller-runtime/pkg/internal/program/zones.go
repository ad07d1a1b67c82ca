//go:build wasmctl_tzdata

package program

// wasmctl build sets the tag if the program asks for time zones by their names.
import _ "time/tzdata"
