// SPDX-License-Identifier: Apache-2.0

package linear

func copied(s copySource, size int) *Image {
	return &Image{size: size, source: imageSource{fd: -1, copy: s}}
}
