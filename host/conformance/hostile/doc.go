// Package hostile is the part of the conformance kit that holds the host against malicious
// guests. Its tests load each guest of guests/, and modules that are made byte by byte, next
// to a module that behaves. Whatever the guest does, the host must say what happened, go on
// serving the other module, and have its memory back once the guest is gone. No call takes
// longer than one and a half times its timeout and 50 ms, nor more memory than it may.
//
// The tests named Process do the same from outside: the real command with its defaults, on a
// real API server, takes signals during attacks, and its output must not be the guest's.
//
//	go test ./host/conformance/hostile
//	WASMCTL_HOSTILE=all go test ./host/conformance/hostile -run Process -timeout 1h
//	go test ./host/conformance/hostile -run P99 -hostile.p99 2s -v   # how the neighbour fares
//
// A busy machine delays a call, too. /proc says how long threads were ready to run and did not,
// and how long other processes computed: the bounds are wider by the lower of both.
//
// What a guest does stands at the head of its .wat; build.sh converts it.
// docs/security.md says which test stands for which threat.
package hostile
