// Package hostile is the part of the conformance kit that holds the host against malicious
// guests. Its tests load each guest of guests/, and modules that are made byte by byte, next
// to a module that behaves. Whatever the guest does, the host must say what happened, go on
// serving the other module, and have its memory back once the guest is gone.
//
//	go test ./host/conformance/hostile
//	go test ./host/conformance/hostile -run P99 -hostile.p99 2s -v   # how the neighbour fares
//
// What a guest does stands at the head of its .wat; build.sh converts it.
// docs/security.md says which test stands for which threat.
package hostile
