// SPDX-License-Identifier: Apache-2.0

package builder

import "sigs.k8s.io/controller-runtime/pkg/predicate"

// settings are the values that options set.
type settings struct {
	predicates []predicate.Predicate
	metadata   bool
	everyOwner bool
}

// ForInput has the values that options of For set.
type ForInput struct{ settings }

// OwnsInput has the values that options of Owns set.
type OwnsInput struct{ settings }

// WatchesInput has the values that options of Watches set.
type WatchesInput[request comparable] struct{ settings }

func (w *WatchesInput[request]) set() *settings { return &w.settings }

// anyWatchesInput is a WatchesInput for any type of request.
type anyWatchesInput interface{ set() *settings }

// ForOption is an option of For.
type ForOption interface{ ApplyToFor(in *ForInput) }

// OwnsOption is an option of Owns.
type OwnsOption interface{ ApplyToOwns(in *OwnsInput) }

// WatchesOption is an option of Watches.
type WatchesOption interface{ ApplyToWatches(in anyWatchesInput) }

// WithPredicates hides an event unless all predicates accept it.
func WithPredicates(predicates ...predicate.Predicate) Predicates { return Predicates{predicates} }

// Predicates is the option that WithPredicates returns.
type Predicates struct{ predicates []predicate.Predicate }

// ApplyToFor implements ForOption.
func (p Predicates) ApplyToFor(in *ForInput) { in.predicates = p.predicates }

// ApplyToOwns implements OwnsOption.
func (p Predicates) ApplyToOwns(in *OwnsInput) { in.predicates = p.predicates }

// ApplyToWatches implements WatchesOption.
func (p Predicates) ApplyToWatches(in anyWatchesInput) { in.set().predicates = p.predicates }

// OnlyMetadata watches only metadata. Read these objects as
// metav1.PartialObjectMetadata.
var OnlyMetadata = onlyMetadata{}

type onlyMetadata struct{}

// ApplyToFor implements ForOption.
func (onlyMetadata) ApplyToFor(in *ForInput) { in.metadata = true }

// ApplyToOwns implements OwnsOption.
func (onlyMetadata) ApplyToOwns(in *OwnsInput) { in.metadata = true }

// ApplyToWatches implements WatchesOption.
func (onlyMetadata) ApplyToWatches(in anyWatchesInput) { in.set().metadata = true }

// MatchEveryOwner reconciles all owners, not only the controlling owner.
var MatchEveryOwner = matchEveryOwner{}

type matchEveryOwner struct{}

// ApplyToOwns implements OwnsOption.
func (matchEveryOwner) ApplyToOwns(in *OwnsInput) { in.everyOwner = true }
