// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// poll calls check until it returns nil, for at most limit; otherwise the error includes check's last one.
func poll(ctx context.Context, every, limit time.Duration, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, every, limit, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("given up (at most %s): %w", limit, errors.Join(last, err))
	}
	return nil
}
