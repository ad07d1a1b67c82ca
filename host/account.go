package host

import "sync/atomic"

// Account counts the memory that the host itself uses to serve a module: the
// requests and answers of its operations, and what they are decoded to. It counts
// in a Budget, beside the memory of instances. A nil Account counts nothing. All
// methods are safe for concurrent use.
type Account struct {
	budget  *Budget
	used    atomic.Int64
	refused atomic.Uint64
}

// NewAccount returns an account that counts in a budget; with nil, nothing is
// ever refused.
func NewAccount(budget *Budget) *Account { return &Account{budget: budget} }

// Take counts n bytes more. Where the budget has not got them, even with all idle
// instances closed, nothing is counted, and the error is an *abi.LimitError.
func (a *Account) Take(n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	if err := a.budget.take(n); err != nil {
		a.refused.Add(1)
		return err
	}
	a.used.Add(n)
	return nil
}

// Give gives back n bytes that were taken.
func (a *Account) Give(n int64) {
	if a == nil || n <= 0 {
		return
	}
	a.used.Add(-n)
	a.budget.give(n)
}

// Used returns how many bytes are counted now.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used.Load()
}

const (
	// smallMessage is how long a request or an answer may be that is not counted.
	smallMessage = 16 << 10
	// requestCopies is what a request takes beside the value that it is decoded to:
	// its copy, its parts, and what is sent.
	requestCopies = 3
)

// takeRequest counts a request while it is served; give ends that.
func (in *instance) takeRequest(n int) (give func(), err error) {
	if n <= smallMessage {
		return func() {}, nil
	}
	account, size := in.gen.cfg.Account, requestCopies*int64(n)
	return func() { account.Give(size) }, account.Take(size)
}

// hold keeps an answer for take, until the next operation or the end of the call.
func (in *instance) hold(body []byte) error {
	if n := int64(len(body)); n > smallMessage {
		if err := in.gen.cfg.Account.Take(n); err != nil {
			return err
		}
		in.run.counted = n
	}
	in.run.held, in.run.holding = body, true
	return nil
}

// drop ends hold.
func (in *instance) drop() {
	in.gen.cfg.Account.Give(in.run.counted)
	in.run.held, in.run.holding, in.run.counted = nil, false, 0
}
