/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The number of flows: crates/algorithms/src/queue/integer/zombies.rs in C. */
#ifndef SUIMON_QUEUE_ZOMBIES_H
#define SUIMON_QUEUE_ZOMBIES_H

#include "fixed.h"

#define ZOMBIES 1000
#define ZOMBIES_MASK 1023
#define OVERWRITE 4

struct zombies {
	u64 compared;
	u64 hit_frequency;
	u64 length;
	/* Only ZOMBIES are used: the rest lets the verifier bound an index by a mask. */
	u32 list[ZOMBIES_MASK + 1];
};

/* Whether the packet met its own flow. */
static __always_inline int zombies_on_packet(struct zombies *z, u32 flow, u64 *random)
{
	if (z->length == 0) {
		z->list[0] = flow;
		z->length = 1;
		return 0;
	}
	u32 met = random_below(random, z->length) & ZOMBIES_MASK;
	int hit = z->list[met] == flow;

	if (z->length < ZOMBIES) {
		z->list[z->length & ZOMBIES_MASK] = flow;
		z->length++;
	} else if (!hit && random_below(random, OVERWRITE) == 0) {
		z->list[met] = flow;
	}
	z->compared = min(z->compared + 1, ZOMBIES * OVERWRITE);
	if (hit)
		z->hit_frequency += (ONE - z->hit_frequency) / z->compared;
	else
		z->hit_frequency -= z->hit_frequency / z->compared;
	return hit;
}

static __always_inline u64 flow_count(const struct zombies *z)
{
	u64 most = z->compared << 16;
	u64 flows = z->hit_frequency == 0 ? most : (ONE << 16) / z->hit_frequency;

	return max(min(flows, most), 1 << 16);
}

#endif
