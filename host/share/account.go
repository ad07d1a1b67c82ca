// SPDX-License-Identifier: Apache-2.0

package share

import "sync/atomic"

// Account counts the memory that the host itself uses to serve a module: the requests and
// answers of its operations, and their decoded form. The memory is charged to a Budget, in
// addition to the memory of instances. A nil Account counts nothing. All methods are safe
// for concurrent use.
type Account struct {
	budget  *Budget
	used    atomic.Int64
	refused atomic.Uint64
}

// NewAccount returns an account that charges a budget. With a nil budget, nothing is ever
// refused.
func NewAccount(budget *Budget) *Account { return &Account{budget: budget} }

// Take charges n bytes. If the budget does not have them, even after all idle instances
// were closed, nothing is charged, and the error is an *abi.LimitError.
func (a *Account) Take(n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	if err := a.budget.Take(n); err != nil {
		a.refused.Add(1)
		return err
	}
	a.used.Add(n)
	return nil
}

// Give returns n bytes that were taken.
func (a *Account) Give(n int64) {
	if a == nil || n <= 0 {
		return
	}
	a.used.Add(-n)
	a.budget.Give(n)
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
