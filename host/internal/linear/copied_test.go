// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package linear

func copied(s copySource, size int) *Image { return &Image{size: size, source: s} }
