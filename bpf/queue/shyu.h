/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Shyu-AQM over RED: crates/algorithms/src/queue/integer/shyu.rs in C; the reasons stand there. */
#ifndef SUIMON_QUEUE_SHYU_H
#define SUIMON_QUEUE_SHYU_H

#include "red.h"
#include "sets.h"

#define DISTANCES UNIFORM
/* Packets tell whether they open a connection. */
#define SEES_OPENINGS

#define PACKETS 100
#define MAX_RTT_NS (1ULL << 36)
#define MAX_WEIGHT ((1ULL << 31) - 1)

struct opening {
	/* Zero where this place is free. */
	u64 began;
	/* Zero until the packet after the SYN. */
	u64 rtt;
	u32 flow;
	u32 unused;
};

struct set {
	struct opening openings[WAYS];
};

struct law {
	struct red red;
	/* Zero until one is known. */
	u64 mean_rtt;
	struct set sets[SETS];
};

static __always_inline struct set *set_of(struct law *law, u32 flow)
{
	return &law->sets[set_number(flow)];
}

/* The place that is free, or has been taken longest. */
static __always_inline struct opening *oldest_of(struct set *set)
{
	struct opening *oldest = &set->openings[0];

	for (int i = 1; i < WAYS; i++) {
		if (set->openings[i].began < oldest->began)
			oldest = &set->openings[i];
	}
	return oldest;
}

static __always_inline u64 rtt_of(struct law *law, u64 now, u32 flow, int opens)
{
	struct set *set = set_of(law, flow);
	struct opening *own = 0;

	for (int i = 0; i < WAYS; i++) {
		struct opening *one = &set->openings[i];

		if (one->flow == flow && one->began > 0) {
			own = one;
			break;
		}
	}
	if (opens) {
		if (!own)
			own = oldest_of(set);
		own->began = max(now, 1);
		own->rtt = 0;
		own->flow = flow;
		return 0;
	}
	if (!own)
		return 0;
	if (own->rtt == 0)
		own->rtt = min(less(now, own->began), MAX_RTT_NS);
	return own->rtt;
}

static __always_inline u64 weight_of(struct law *law, const struct packet *packet)
{
	u64 rtt = rtt_of(law, packet->now, packet->flow, packet->opens);

	if (rtt == 0)
		return 1 << 16;
	if (law->mean_rtt == 0)
		law->mean_rtt = rtt;
	else if (rtt > law->mean_rtt)
		law->mean_rtt += (rtt - law->mean_rtt) / PACKETS;
	else
		law->mean_rtt -= (law->mean_rtt - rtt) / PACKETS;
	return min((law->mean_rtt << 16) / rtt, MAX_WEIGHT);
}

static __always_inline u64 law_advise(struct law *law, const volatile struct settings *s, const struct packet *packet, u64 *random)
{
	u64 weight = weight_of(law, packet);

	red_on_arrival(&law->red, s, packet);
	u64 advice = red_advice(&law->red, s);

	return advice < ONE ? min((advice * weight) >> 16, ONE) : advice;
}

static __always_inline void law_on_verdict(struct law *law, const volatile struct settings *s, const struct packet *packet, u32 verdict)
{
}

static __always_inline void law_show(const struct law *law, const volatile struct settings *s, struct shown *shown)
{
	red_show(&law->red, s, shown);
	shown->rtt_ns = law->mean_rtt;
}

#endif
