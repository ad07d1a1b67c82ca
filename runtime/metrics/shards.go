// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// slotBuckets are the buckets of the number of objects in a slot.
var slotBuckets = []float64{10, 100, 1_000, 10_000, 100_000}

func (g gathering) shards(s *Shards) {
	for state, n := range s.States {
		g.set(shardSlots, float64(n), state)
	}
	g.set(shardEpoch, float64(s.Epoch))
	g.set(shardMoves, float64(s.Moves))
	g.set(shardEnded, float64(s.Ended))
	g.set(shardPeerAge, s.PeerAge.Seconds())
	g.set(shardLoad, s.Load)
	sum, buckets := 0, map[float64]uint64{}
	for _, limit := range slotBuckets {
		buckets[limit] = 0
	}
	for _, n := range s.Objects {
		sum += n
		for _, limit := range slotBuckets {
			if float64(n) <= limit {
				buckets[limit]++
			}
		}
	}
	g.out <- prometheus.MustNewConstHistogram(shardObjects.desc, uint64(len(s.Objects)), float64(sum), buckets)
}
