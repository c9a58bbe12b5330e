/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The share of each heavy flow: crates/algorithms/src/queue/integer/heaviest.rs in C; the reasons stand there. */
#ifndef SUIMON_QUEUE_HEAVIEST_H
#define SUIMON_QUEUE_HEAVIEST_H

#include "law.h"
#include "sets.h"

/* What `even` notes on a flow. */
struct losses {
	/* In parts of ONE. */
	u64 debt;
	u64 interval;
	/* Zero where there was none. */
	u64 last;
};

struct entry {
	u64 count;
	u64 error;
	struct losses note;
	u32 flow;
	u32 unused;
};

struct set {
	u64 epoch;
	struct entry entries[WAYS];
};

struct heaviest {
	u64 epoch;
	u64 total;
	u64 most;
	u32 flow;
	u32 is_known;
	struct set sets[SETS];
};

static __always_inline struct set *set_of(struct heaviest *h, u32 flow)
{
	return &h->sets[set_number(flow)];
}

static __always_inline void heaviest_age(struct heaviest *h, u64 half_life, u64 now, u32 flow)
{
	u64 epoch = now / max(half_life, 1);
	struct set *set = set_of(h, flow);

	if (epoch > h->epoch) {
		u64 halvings = min(epoch - h->epoch, 63);

		h->epoch = epoch;
		h->total >>= halvings;
		h->most >>= halvings;
	}
	u64 halvings = min(h->epoch - set->epoch, 63);

	if (halvings == 0)
		return;
	set->epoch = h->epoch;
	for (int i = 0; i < WAYS; i++) {
		set->entries[i].count >>= halvings;
		set->entries[i].error >>= halvings;
	}
}

/* The entry of the flow, or none. */
static __always_inline struct entry *entry_of(struct heaviest *h, u32 flow)
{
	struct set *set = set_of(h, flow);

	for (int i = 0; i < WAYS; i++) {
		if (set->entries[i].flow == flow)
			return &set->entries[i];
	}
	return 0;
}

static __always_inline void heaviest_on_packet(struct heaviest *h, const volatile struct settings *s, u64 half_life, u64 now,
					       u32 flow, u64 size)
{
	u64 long_half = max(half_life, 1);
	u64 into = min(less(now, h->epoch * long_half), long_half - 1);
	u64 until_next = ((long_half - into) << 32) / long_half;
	u64 weighted = size * (power_of_half(&s->tables, until_next) >> 15);
	struct entry *entry = entry_of(h, flow);

	h->total += weighted;
	if (!entry) {
		struct set *set = set_of(h, flow);

		entry = &set->entries[0];
		for (int i = 1; i < WAYS; i++) {
			if (set->entries[i].count < entry->count)
				entry = &set->entries[i];
		}
		entry->error = entry->count;
		entry->flow = flow;
		entry->note.debt = 0;
		entry->note.interval = 0;
		entry->note.last = 0;
	}
	entry->count += weighted;
	u64 certain = entry->count - entry->error;

	if (!h->is_known || h->flow == flow || certain > h->most) {
		h->is_known = 1;
		h->flow = flow;
		h->most = certain;
	}
}

static __always_inline u64 certain_of(struct heaviest *h, u32 flow)
{
	struct entry *entry = entry_of(h, flow);

	return entry ? entry->count - entry->error : 0;
}

/* a / b in parts of ONE, at most one; for counts of bytes in 1/65536. */
static __always_inline u64 ratio(u64 a, u64 b)
{
	if (a >= b)
		return ONE;
	return min((min(a, (1ULL << 48) - 1) << 16) / max(b >> 16, 1), ONE);
}

static __always_inline void heaviest_show(const struct heaviest *h, struct shown *shown)
{
	shown->heaviest_share = h->total ? ratio(h->most, h->total) : 0;
}

#endif
