// SPDX-License-Identifier: Apache-2.0

// Package load reads, checks and compiles modules: bytes become a Module, which describes
// their sections, and then Code, from which instances are made. It also stores and shares
// compiled code. Nothing in here runs a guest.
package load
