// SPDX-License-Identifier: Apache-2.0

package linear

import (
	"bytes"
	"errors"
)

// pageSize is the granularity in which an image is kept: pages of zeros take no
// memory. It is that of the system, or a multiple.
const pageSize = 4 << 10

// Image is the content that memories start with. It is there once, however many
// memories are made of it; what one of them changes is its own. When it is closed, the
// memories that were made of it stay as they are.
type Image struct {
	size     int
	resident int64
	source   imageSource
}

// NewImage makes an image of what a memory has now.
func NewImage(content []byte) (*Image, error) {
	im := &Image{size: len(content)}
	if err := im.source.create(len(content)); err != nil {
		return nil, err
	}
	for at := 0; at < len(content); {
		end := at
		for end < len(content) && !isZero(content[end:min(end+pageSize, len(content))]) {
			end = min(end+pageSize, len(content))
		}
		if end == at {
			at += pageSize
			continue
		}
		if err := im.source.write(content[at:end], at); err != nil {
			im.Close()
			return nil, err
		}
		im.resident += int64(end - at)
		at = end
	}
	return im, nil
}

var zeros [pageSize]byte

func isZero(b []byte) bool { return bytes.Equal(b, zeros[:len(b)]) }

// Size is how long a memory that is made of the image is, in bytes.
func (im *Image) Size() int { return im.size }

// Resident is how many bytes the image itself takes.
func (im *Image) Resident() int64 { return im.resident }

// Close gives the image back. Its pages stay as long as memories have them.
func (im *Image) Close() { im.source.close() }

// Load gives a memory the content of an image. The memory is as long as the image, and
// views of it stay valid; or it has no bytes yet, and becomes as long. After an error it
// can only be freed.
func (m *Memory) Load(im *Image) error {
	if m.committed != 0 && m.committed != im.size || im.size > m.most {
		return errors.New("memory: its size is not that of the image")
	}
	if im.size == 0 {
		return nil
	}
	err := im.source.load(m, im.size)
	if err == nil {
		m.committed = im.size
	}
	return err
}
