// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
)

// Kind is a kind of memory that is charged to a tenant.
type Kind int

// The kinds of memory. Those from Modules on are pinned: they cannot be taken back, so they
// remain bounded while other tenants have no memory.
const (
	Instances  Kind = iota // the linear memory of instances, and its images
	Operations             // requests and answers of operations, and their decoded form
	Reviews                // requests and answers of webhooks, and their decoded form
	Modules                // the bytes of modules that are being loaded, or that are in files
	Code                   // compiled code, and the memory with which instances start
	Objects                // cached objects
	kinds                  // the number of kinds
)

var kindNames = [kinds]string{"instances", "operations", "reviews", "modules", "code", "objects"}

// String returns the name of a kind.
func (k Kind) String() string { return kindNames[k] }

func (k Kind) pinned() bool { return k >= Modules }

// Account charges memory of one kind to a tenant of a Budget. A nil Account counts nothing.
// All methods are safe for concurrent use.
type Account struct {
	budget  *Budget
	tenant  string
	kind    Kind
	used    atomic.Int64
	refused atomic.Uint64
}

// NewAccount returns an account of a tenant in a budget. With a nil budget, nothing is ever
// refused.
func NewAccount(budget *Budget, tenant string, kind Kind) *Account {
	return &Account{budget: budget, tenant: tenant, kind: kind}
}

// Take charges n bytes. If the budget does not have them, even after it has taken back what
// it may, nothing is charged, and the error is an *abi.LimitError. Take may wait for memory
// that is taken back.
func (a *Account) Take(n int64) error {
	if a.TryTake(n) {
		return nil
	}
	if err := a.budget.take(a.tenant, n, a.kind); err != nil {
		a.refused.Add(1)
		return err
	}
	a.used.Add(n)
	return nil
}

// TryTake charges n bytes if they are free, and reports whether they were.
func (a *Account) TryTake(n int64) bool {
	switch {
	case a == nil || n <= 0:
		return true
	case a.budget != nil && !a.budget.tryTake(a.tenant, n, a.kind):
		return false
	}
	a.used.Add(n)
	return true
}

// Give returns n bytes that were taken.
func (a *Account) Give(n int64) {
	if a == nil || n <= 0 {
		return
	}
	a.used.Add(-n)
	if a.budget != nil {
		a.budget.give(a.tenant, n, a.kind)
	}
}

// force charges n bytes that are in use already, even if the budget does not have them.
func (a *Account) force(n int64) {
	if a == nil {
		return
	}
	a.used.Add(n)
	if a.budget != nil {
		a.budget.force(a.tenant, n, a.kind)
	}
}

// Reclaimed returns the error of a call that was interrupted because
// other tenants need their share of the memory.
func (a *Account) Reclaimed() *abi.LimitError {
	return &abi.LimitError{
		Limit: abi.LimitMemoryBudget, Value: SizeText(a.budget.Stats().Limit), Err: ErrMemoryBudget,
		What: fmt.Sprintf("%v: interrupted: other tenants need their share of the memory, and tenant %s had more than its own", ErrMemoryBudget, a.tenant),
	}
}

// Used returns how many bytes are charged now.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used.Load()
}

// Refused returns how often Take has failed.
func (a *Account) Refused() uint64 { return a.refused.Load() }
