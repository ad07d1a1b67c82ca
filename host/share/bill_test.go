// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The bytes of a bill are charged once while it has users: to the one that came first.
func TestBill_FirstUserPays(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		b := NewBudget(100, 0)
		all := make([]*Account, 4)
		for i := range all {
			all[i] = NewAccount(b, fmt.Sprint(i/2), Code) // two accounts of each tenant
		}
		all = append(all, nil) // that of the operator, which pays nothing
		bill, users := &Bill{}, []*Account{}
		for range 60 {
			if n := len(users); n > 0 && rnd.IntN(2) == 0 {
				i := rnd.IntN(n)
				bill.Leave(users[i])
				users = slices.Delete(users, i, i+1)
			} else if a := all[rnd.IntN(len(all))]; !slices.Contains(users, a) {
				if err := bill.Join(a, 40); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				users = append(users, a)
			}
			var payer *Account
			if len(users) > 0 {
				payer = users[0]
			}
			for i, a := range all {
				want := int64(0)
				if a != nil && a == payer {
					want = 40
				}
				if a.Used() != want {
					t.Fatalf("seed %d: account %d has %d bytes, want %d", seed, i, a.Used(), want)
				}
			}
			if st := b.Stats(); st.Used != payer.Used() {
				t.Fatalf("seed %d: %+v, want %d", seed, st, payer.Used())
			}
		}
	}
}

// A bill that does not fit has no user.
func TestBill_ThatDoesNotFitIsRefused(t *testing.T) {
	b, bill := NewBudget(100, 0), &Bill{}
	large, small := NewAccount(b, "large", Code), NewAccount(b, "small", Code)
	if bill.Join(large, 60) == nil {
		t.Fatal("60 of 100 bytes can be pinned")
	}
	if err := bill.Join(small, 20); err != nil || small.Used() != 20 {
		t.Errorf("%v, %d bytes", err, small.Used())
	}
	bill.Leave(small)
	if b.Stats().Used != 0 {
		t.Errorf("%+v", b.Stats())
	}
}
