// SPDX-License-Identifier: Apache-2.0

package term

// monitorResizeEvents sends nothing: a module has no terminal. The type parameter avoids the
// import of client-go, which has the type of a size.
func monitorResizeEvents[size any](uintptr, chan<- size, chan struct{}) {} //nolint:unused // the library calls it
