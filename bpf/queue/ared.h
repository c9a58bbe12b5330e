/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Adaptive RED: crates/algorithms/src/queue/integer/ared.rs in C, line by line; the reasons stand there. */
#ifndef SUIMON_QUEUE_ARED_H
#define SUIMON_QUEUE_ARED_H

#include "red.h"

#define DISTANCES UNIFORM
#define ALPHA (ONE / 100)

/* The words of the settings behind RED's. */
enum { INTERVAL = OVER, BOTTOM, TOP };

struct law {
	struct red red;
	/* Zero until the first packet. */
	u64 max_p;
	u64 last_change;
};

static __always_inline void adapt(struct law *law, const volatile struct settings *s, u64 now)
{
	u64 min_th = s->words[MIN_TH], max_th = s->words[MAX_TH], average = law->red.average;
	u64 margin = (less(max_th, min_th) << 16) * 2 / 5;

	if (less(now, law->last_change) < s->words[INTERVAL])
		return;
	if (average > (max_th << 16) - margin && law->max_p < s->words[TOP])
		law->max_p = min(law->max_p + min(ALPHA, law->max_p / 4), s->words[TOP]);
	else if (average < (min_th << 16) + margin && law->max_p > s->words[BOTTOM])
		law->max_p = max(law->max_p * 9 / 10, s->words[BOTTOM]);
	else
		return;
	law->last_change = now;
}

static __always_inline u64 law_advise(struct law *law, const volatile struct settings *s, const struct packet *packet, u64 *random)
{
	if (law->max_p == 0)
		law->max_p = s->words[MAX_P];
	red_on_arrival(&law->red, s, packet);
	adapt(law, s, packet->now);
	return red_advice_with(&law->red, s, law->max_p);
}

static __always_inline void law_on_verdict(struct law *law, const volatile struct settings *s, const struct packet *packet, u32 verdict)
{
}

static __always_inline void law_show(const struct law *law, const volatile struct settings *s, struct shown *shown)
{
	red_show_advice(&law->red, red_advice_with(&law->red, s, law->max_p), shown);
}

#endif
