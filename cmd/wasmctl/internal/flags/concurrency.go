package flags

import (
	"math"
	"strconv"
)

// zeroConcurrency is what a flag of 0 sets, which Validate refuses: the zero value
// is that of a flag that was not given.
const zeroConcurrency = math.MinInt

// concurrency is the value of a flag.
type concurrency int

// Set implements pflag.Value.
func (c *concurrency) Set(text string) error {
	n, err := strconv.Atoi(text)
	if *c = concurrency(n); n == 0 {
		*c = zeroConcurrency
	}
	return err
}

// String implements pflag.Value.
func (c *concurrency) String() string {
	if *c == zeroConcurrency {
		return "0"
	}
	return strconv.Itoa(int(*c))
}

// Type implements pflag.Value.
func (c *concurrency) Type() string { return "int" }
