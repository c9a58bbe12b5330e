/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* `even` over RED: crates/algorithms/src/queue/integer/even.rs in C; the reasons stand there. */
#ifndef SUIMON_QUEUE_EVEN_H
#define SUIMON_QUEUE_EVEN_H

#include "heaviest.h"
#include "red.h"

#define DISTANCES INDEPENDENT
#define LEFT_ALONE 8
#define PACKETS 1000
#define MAX_WEIGHT ((1ULL << 31) - 1)
#define MAX_GAIN (1ULL << 26)
#define MAX_ADDED (1ULL << 36)
#define MAX_DEBT (1ULL << 48)

/* The words behind RED's. */
enum { EXPONENT = OVER, HALF_LIFE, HOLD };

struct law {
	struct red red;
	/* What is missing from ONE to the mean, so that a new law begins at one. */
	u64 below_one;
	struct heaviest shares;
};

static __always_inline u64 weight_of(struct law *law, const volatile struct settings *s, u32 flow)
{
	u64 x = ONE, mean = ONE - law->below_one;

	if (law->shares.is_known && law->shares.most > 0) {
		u64 share = ratio(certain_of(&law->shares, flow), law->shares.most);

		x = share == 0 ? 0 : power_of_half(&s->tables, s->words[EXPONENT] * negative_log2(&s->tables, share));
	}
	if (x > mean)
		mean += (x - mean) / PACKETS;
	else
		mean -= (mean - x) / PACKETS;
	law->below_one = ONE - mean;
	return min((x << 16) / max(mean, 1), MAX_WEIGHT);
}

static __always_inline u64 law_advise(struct law *law, const volatile struct settings *s, const struct packet *packet, u64 *random)
{
	u64 now = packet->now;

	heaviest_age(&law->shares, s->words[HALF_LIFE], now, packet->flow);
	red_on_arrival(&law->red, s, packet);
	u64 advice = red_advice(&law->red, s);
	u64 weight = weight_of(law, s, packet->flow);

	if (advice == ADVICE_CALM)
		return advice;
	u64 p = min(advice, ONE);
	struct entry *entry = entry_of(&law->shares, packet->flow);

	if (!entry)
		return 0;
	struct losses *losses = &entry->note;
	u64 hold = s->words[HOLD];

	if (losses->last > 0 && less(now, losses->last) < min(hold, losses->interval / LEFT_ALONE))
		return 0;
	u64 gain = 1 << 16;

	if (losses->interval > 0)
		gain = min(max((hold << 16) / losses->interval, 1 << 16), MAX_GAIN);
	u64 added = min((p * weight) >> 16, MAX_ADDED);

	losses->debt = min(losses->debt + ((added * gain) >> 16), MAX_DEBT);
	if (losses->debt < ONE || red_is_short(s, packet->backlog_bytes))
		return 0;
	return advice == ADVICE_DROP ? ADVICE_DROP : ONE;
}

static __always_inline void law_on_verdict(struct law *law, const volatile struct settings *s, const struct packet *packet, u32 verdict)
{
	u64 now = packet->now;

	if (verdict == VERDICT_PASS || verdict == VERDICT_MARK)
		heaviest_on_packet(&law->shares, s, s->words[HALF_LIFE], now, packet->flow, packet->size);
	struct entry *entry = entry_of(&law->shares, packet->flow);

	if (!entry)
		return;
	struct losses *losses = &entry->note;

	if (verdict == VERDICT_PASS) {
		if (losses->last == 0)
			losses->last = now;
		return;
	}
	u64 since = losses->last > 0 ? less(now, losses->last) : 0;

	losses->interval = losses->interval == 0 ? since : (3 * losses->interval + since) / 4;
	losses->last = now;
	losses->debt = 0;
}

static __always_inline void law_show(const struct law *law, const volatile struct settings *s, struct shown *shown)
{
	red_show(&law->red, s, shown);
	heaviest_show(&law->shares, shown);
}

#endif
