/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* DPD-QT over RED: crates/algorithms/src/queue/integer/dpd_qt.rs in C; the reasons stand there. */
#ifndef SUIMON_QUEUE_DPD_QT_H
#define SUIMON_QUEUE_DPD_QT_H

#include "heaviest.h"
#include "red.h"

#define DISTANCES UNIFORM

/* The words behind RED's. */
enum { MULTIPLIER = OVER, HALF_LIFE };

struct law {
	struct red red;
	u64 previous;
	struct heaviest shares;
};

static __always_inline u64 law_advise(struct law *law, const volatile struct settings *s, const struct packet *packet, u64 *random)
{
	int grew = packet->backlog_packets > law->previous;

	heaviest_age(&law->shares, s->words[HALF_LIFE], packet->now, packet->flow);
	law->previous = packet->backlog_packets;
	red_on_arrival(&law->red, s, packet);
	u64 advice = red_advice(&law->red, s);

	if (advice < ONE && grew && law->shares.is_known && law->shares.flow == packet->flow)
		return min((advice * s->words[MULTIPLIER]) >> 8, ONE);
	return advice;
}

static __always_inline void law_on_verdict(struct law *law, const volatile struct settings *s, const struct packet *packet, u32 verdict)
{
	if (verdict == VERDICT_PASS || verdict == VERDICT_MARK)
		heaviest_on_packet(&law->shares, s, s->words[HALF_LIFE], packet->now, packet->flow, packet->size);
}

static __always_inline void law_show(const struct law *law, const volatile struct settings *s, struct shown *shown)
{
	red_show(&law->red, s, shown);
	heaviest_show(&law->shares, shown);
}

#endif
