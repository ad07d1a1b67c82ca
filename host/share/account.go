// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
)

// Account charges memory to a tenant of a Budget: the linear memory of a module's instances,
// or the memory that the host itself uses to serve the module, such as the requests and
// answers of its operations and their decoded form. A nil Account counts nothing. All methods
// are safe for concurrent use.
type Account struct {
	budget  *Budget
	tenant  string
	pin     bool
	used    atomic.Int64
	refused atomic.Uint64
}

// NewAccount returns an account of a tenant in a budget. With a nil budget, nothing is ever
// refused.
func NewAccount(budget *Budget, tenant string) *Account {
	return &Account{budget: budget, tenant: tenant}
}

// NewPinnedAccount returns an account of memory that cannot be taken back, such as the bytes
// of a module: it remains bounded while other tenants have none.
func NewPinnedAccount(budget *Budget, tenant string) *Account {
	return &Account{budget: budget, tenant: tenant, pin: true}
}

// Take charges n bytes. If the budget does not have them, even after it has taken back what
// it may, nothing is charged, and the error is an *abi.LimitError. Take may wait for memory
// that is taken back.
func (a *Account) Take(n int64) error {
	if a.TryTake(n) {
		return nil
	}
	if err := a.budget.take(a.tenant, n, a.pin); err != nil {
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
	case a.budget != nil && !a.budget.tryTake(a.tenant, n, a.pin):
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
		a.budget.give(a.tenant, n, a.pin)
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
