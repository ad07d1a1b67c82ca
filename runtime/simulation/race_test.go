// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation

// Under the race detector, everything takes ten times as long.
func init() { seeds = shortSeeds }
