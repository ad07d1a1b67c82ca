//go:build !linux

package sysmemory

// Container is the memory of the container, or 0 where that is not bounded.
func Container() int64 { return 0 }

func machine() int64 { return 0 }
