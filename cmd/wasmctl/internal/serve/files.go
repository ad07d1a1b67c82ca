// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"

	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/spill"
)

// maxFiles bounds the bytes of all modules in temporary files. A tenant that is alone may use
// half of them, and n tenants leave a part of 1/(n+1) to a newcomer.
const maxFiles = 8 << 30

// files has the bytes of modules outside of memory, those of each digest once. They are charged
// to the tenant that fetched them first, as long as a Reconciler uses them.
type files struct {
	bytes  spill.Shared
	budget *share.Budget
}

func newFiles() *files { return &files{budget: share.NewBudget(maxFiles, 0)} }

// store stores the module that write writes. The error matches share.ErrMemoryBudget if the
// tenant has too many modules.
func (f *files) store(tenant string, write func(io.Writer) error) (b *spill.Bytes, digest string, err error) {
	m := &meter{account: share.NewAccount(f.budget, tenant, share.Modules)}
	defer func() { m.account.Give(m.charged) }()
	b, digest, err = f.bytes.Fill(func(w io.Writer) (string, error) {
		sum := sha256.New()
		err := write(io.MultiWriter(m, sum, w))
		return "sha256:" + hex.EncodeToString(sum.Sum(nil)), err
	})
	if err == nil && b.Charge() {
		runtime.AddCleanup(b, m.account.Give, m.charged)
		m.charged = 0
	}
	return b, digest, err
}

// meter charges bytes before they are stored.
type meter struct {
	account *share.Account
	charged int64
}

// Write implements io.Writer.
func (m *meter) Write(b []byte) (int, error) {
	n := int64(len(b))
	if !m.account.TryTake(n) {
		return 0, fmt.Errorf("too many modules: %w", share.ErrMemoryBudget)
	}
	m.charged += n
	return len(b), nil
}
