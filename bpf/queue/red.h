/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* RED, gentle and in bytes: crates/algorithms/src/queue/integer/red.rs in C, line by line; the reasons stand there. */
#ifndef SUIMON_QUEUE_RED_H
#define SUIMON_QUEUE_RED_H

#include "law.h"

#define MAX_QUEUE (1ULL << 26)
#define MAX_IDLE_NS (1ULL << 40)
#define MAX_MISSED (1ULL << 28)

/* The words of the settings; those of a law over RED follow. */
enum { MIN_TH, MAX_TH, MAX_P, W_Q, FORGETS, OVER };

struct red {
	/* In 1/65536 bytes. */
	u64 average;
	u64 size;
	u64 empty_at;
};

static __always_inline void red_on_arrival(struct red *red, const volatile struct settings *s, const struct packet *packet)
{
	u64 size = packet->size << 16, rate = max(s->bytes_per_second, 1);
	u64 queue = min(packet->backlog_bytes, MAX_QUEUE);

	red->size = red->size == 0 ? size : (15 * red->size + size) / 16;
	if (packet->backlog_packets == 0) {
		u64 idle = min(less(packet->now, red->empty_at), MAX_IDLE_NS);
		u64 each = (red->size >> 16) * 1000000000 / rate;
		u64 missed = min((idle << 8) / max(each, 1), MAX_MISSED);
		u64 left = power_of_half(&s->tables, (missed * s->words[FORGETS]) >> 8);

		red->average = ((red->average >> 8) * (left >> 8)) >> 16;
		red->empty_at = packet->now;
	} else {
		u64 q = queue << 16, w = s->words[W_Q] >> 12;

		if (q > red->average)
			red->average += ((q - red->average) * w) >> 20;
		else
			red->average -= ((red->average - q) * w) >> 20;
		red->empty_at = packet->now + queue * 1000000000 / rate;
	}
}

static __always_inline u64 red_advice_with(const struct red *red, const volatile struct settings *s, u64 max_p)
{
	u64 min_th = s->words[MIN_TH], max_th = s->words[MAX_TH];
	u64 average = red->average >> 16, p;

	if (average < min_th)
		return ADVICE_CALM;
	if (average < max_th)
		p = max_p * less(red->average >> 12, min_th << 4) / max((max_th - min_th) << 4, 1);
	else
		p = min(max_p + (ONE - max_p) * min(less(red->average >> 12, max_th << 4), max_th << 4) / max(max_th << 4, 1), ONE);
	return p == ONE ? ADVICE_DROP : p;
}

static __always_inline u64 red_advice(const struct red *red, const volatile struct settings *s)
{
	return red_advice_with(red, s, s->words[MAX_P]);
}

static __always_inline int red_is_short(const volatile struct settings *s, u64 backlog)
{
	return backlog < s->words[MIN_TH];
}

static __always_inline void red_show_advice(const struct red *red, u64 advice, struct shown *shown)
{
	shown->average_bytes = red->average >> 16;
	shown->probability = advice == ADVICE_CALM ? 0 : min(advice, ONE);
}

static __always_inline void red_show(const struct red *red, const volatile struct settings *s, struct shown *shown)
{
	red_show_advice(red, red_advice(red, s), shown);
}

#endif
