package main

import (
	"context"
	"errors"
	"fmt"
)

// checkFiles checks the files of controllers before anything is connected. Wrong
// joins what is wrong with some of several, which do not stop the others; the
// error is that of the only one, or that none can start.
func checkFiles(ctx context.Context, list []*controllerOptions) (wrong, err error) {
	var errs []error
	for _, o := range list {
		if err := o.checkFiles(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	switch wrong = errors.Join(errs...); {
	case len(errs) == 0 || len(errs) < len(list):
		return wrong, nil
	case len(list) == 1:
		return nil, wrong
	}
	return nil, fmt.Errorf("%w: %w", errNoneStarts, wrong)
}

// checkFiles checks the files of a controller, as far as that takes neither a
// cluster nor running the module.
func (o *controllerOptions) checkFiles(ctx context.Context) error {
	info, err := inspectModule(ctx, o.module)
	errs := []error{err}
	_, _, err = o.readSettings()
	errs = append(errs, err)
	f, _, err := o.rights.readGrant()
	errs = append(errs, err)
	if err == nil && info != nil && (info.Manifest != nil || o.name != "") {
		errs = append(errs, o.rights.names(f, o.controllerName(info.Manifest)))
	}
	return errors.Join(errs...)
}
