// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package harden

import "errors"

var errLinux = errors.New("only Linux has it")

func filesError() error { return errLinux }

func apply(_ *Policy, s *State) { s.add("hardening", errLinux) }
