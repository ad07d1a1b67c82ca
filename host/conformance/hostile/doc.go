// SPDX-License-Identifier: Apache-2.0

// Package hostile is the part of the conformance kit that tests the host against malicious guests.
// Its tests load each guest of guests/, and modules that are built byte by byte, next to an honest
// module. Whatever the guest does, the host must report it, continue to serve the other module, and
// get its memory back after the guest is gone. No call takes longer than one and a half times its
// timeout plus 50 ms, or more memory than its limit.
//
// The tests named Process do the same from outside. The real command with its defaults, on a real
// API server, receives signals during attacks, and its output must not be controlled by the guest.
//
//	go test ./host/conformance/hostile
//	WASMCTL_HOSTILE=all go test ./host/conformance/hostile -run Process -timeout 1h
//	go test ./host/conformance/hostile -run P99 -hostile.p99 2s -v   # how the neighbour fares
//
// A busy machine also delays a call. /proc shows how long threads were ready but did not run, and
// how long other processes computed. The limits are extended by the lower of both.
//
// The head of each .wat describes the guest, and build.sh converts it. docs/security.md maps tests
// to threats.
package hostile
