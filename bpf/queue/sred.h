/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* SRED: crates/algorithms/src/queue/integer/sred.rs in C, line by line; the reasons stand there. */
#ifndef SUIMON_QUEUE_SRED_H
#define SUIMON_QUEUE_SRED_H

#include "law.h"
#include "zombies.h"

#define DISTANCES INDEPENDENT

/* The words of the settings. */
enum { CAPACITY, P_MAX, HITS };

struct law {
	u64 p_zap;
	struct zombies zombies;
};

static __always_inline u64 p_sred(const volatile struct settings *s, u64 q)
{
	if (3 * q >= s->words[CAPACITY])
		return s->words[P_MAX];
	if (6 * q >= s->words[CAPACITY])
		return s->words[P_MAX] / 4;
	return 0;
}

/* a * b, each at most ONE. */
static __always_inline u64 product(u64 a, u64 b)
{
	return ((a >> 1) * (b >> 1)) >> 30;
}

static __always_inline u64 law_advise(struct law *law, const volatile struct settings *s, const struct packet *packet, u64 *random)
{
	int hit = zombies_on_packet(&law->zombies, packet->flow, random);
	u64 frequency = law->zombies.hit_frequency;
	u64 many = frequency == 0 ? ONE : min((1ULL << 56) / frequency, ONE);
	u64 p = product(p_sred(s, packet->backlog_bytes), product(many, many));

	if (s->words[HITS] && hit)
		p = p >= frequency ? ONE : min(p + (p << 31) / max(frequency >> 1, 1), ONE);
	law->p_zap = p;
	return p;
}

static __always_inline void law_on_verdict(struct law *law, const volatile struct settings *s, const struct packet *packet, u32 verdict)
{
}

static __always_inline void law_show(const struct law *law, const volatile struct settings *s, struct shown *shown)
{
	shown->probability = law->p_zap;
	shown->flows = flow_count(&law->zombies);
}

#endif
