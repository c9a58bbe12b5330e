/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* RTT-AQM: crates/algorithms/src/queue/integer/rtt_aqm.rs in C, line by line; the reasons stand there. */
#ifndef SUIMON_QUEUE_RTT_AQM_H
#define SUIMON_QUEUE_RTT_AQM_H

#include "law.h"
#include "zombies.h"

#define DISTANCES WAIT
#define DRAWN 10
#define TRIES 2
#define GAPS 12
#define LIMIT_NS 2000000000ULL
#define SLACK_NS 2000000ULL
#define RESOLUTION 10
#define RING (1 << RESOLUTION)
#define EXPIRED 8
#define MAX_DT_NS (1ULL << 31)
#define MAX_TOTAL (1ULL << 43)
#define MAX_ARRIVALS (1ULL << 37)

/* The words of the settings. */
enum { TARGET, INITIAL_RTT, FORCED_RTT, WINDOW, SMOOTHING };

struct arrivals {
	u64 total;
	u32 head;
	u32 length;
	u64 at[RING];
	u64 bytes[RING];
};

enum { NO_TRY, PACING, JOINING, FIRST, SECOND };

struct try {
	u32 phase;
	u32 flow;
	u64 deadline;
	u64 last;
	/* PACING. */
	u64 since;
	u64 left;
	/* The others. */
	u64 dt;
	u64 t0;
	u64 t1;
	u64 t2;
};

struct law {
	/* In 1/65536 bytes. */
	u64 segment;
	/* Zero until the first estimate: then the initial one holds. */
	u64 representative;
	/* 63 bits after the point. */
	u64 p;
	u64 computed_at;
	u64 is_computed;
	struct try tries[TRIES];
	struct arrivals arrivals;
	struct zombies flows;
};

static __always_inline void arrivals_on_packet(struct arrivals *a, u64 window, u64 now, u64 size)
{
	u32 last = (a->head + a->length + RING - 1) & (RING - 1);

	a->total += size;
	if ((a->length > 0 && less(now, a->at[last]) < window >> RESOLUTION) || a->length == RING) {
		a->bytes[last] += size;
	} else {
		u32 next = (a->head + a->length) & (RING - 1);

		a->at[next] = now;
		a->bytes[next] = size;
		a->length++;
	}
	for (int i = 0; i < EXPIRED; i++) {
		u32 head = a->head & (RING - 1);

		if (a->length == 0 || less(now, a->at[head]) < window)
			break;
		a->total -= a->bytes[head];
		a->head = (head + 1) & (RING - 1);
		a->length--;
	}
}

static __always_inline u64 arrival_rate(const struct arrivals *a, u64 window)
{
	return min(min(a->total, MAX_TOTAL) * 1000000 / max(window / 1000, 1), MAX_ARRIVALS);
}

static __always_inline int alike(u64 a, u64 b, u64 slack)
{
	u64 apart = a > b ? a - b : b - a;

	return apart <= max(a, b) / 10 + slack;
}

/* The round-trip time where the packet completes an estimate, otherwise 0. */
static __always_inline u64 try_advance(struct try *t, u64 now, u32 flow, u64 *random)
{
	if (t->phase == NO_TRY) {
		if (random_below(random, DRAWN) == 0) {
			t->phase = PACING;
			t->flow = flow;
			t->deadline = now + LIMIT_NS;
			t->last = now;
			t->since = now;
			t->left = GAPS;
		}
		return 0;
	}
	if (now > t->deadline) {
		t->phase = NO_TRY;
		return 0;
	}
	if (flow != t->flow)
		return 0;
	u64 last = t->last;
	u64 gap = less(now, last);

	if (t->phase == PACING) {
		if (t->left == 1) {
			t->phase = JOINING;
			t->dt = less(now, t->since) / GAPS;
		} else {
			t->left--;
		}
		t->deadline = now + LIMIT_NS;
	} else if (gap > t->dt) {
		if (t->phase == JOINING) {
			t->phase = FIRST;
			t->t0 = now;
		} else if (t->phase == FIRST) {
			t->phase = SECOND;
			t->t1 = last;
			t->t2 = now;
		} else {
			t->phase = NO_TRY;
			if (alike(t->t2 - t->t0, now - t->t2, 0) && alike(t->t1 - t->t0, last - t->t2, SLACK_NS))
				return now - t->t2;
			return 0;
		}
	}
	t->last = now;
	return 0;
}

static __always_inline u64 rtt_of(const struct law *law, const volatile struct settings *s)
{
	if (s->words[FORCED_RTT] > 0)
		return s->words[FORCED_RTT];
	return law->representative ? law->representative : s->words[INITIAL_RTT];
}

static __always_inline u64 probability(const struct law *law, const volatile struct settings *s, u64 queue)
{
	u64 x = arrival_rate(&law->arrivals, s->words[WINDOW]), c = s->bytes_per_second;
	u64 rtt_us = max(rtt_of(law, s) / 1000, 1);
	u64 predicted = x >= c ? queue + (x - c) * rtt_us / 1000000 : less(queue, (c - x) * rtt_us / 1000000);

	if (predicted <= s->words[TARGET])
		return 0;
	u64 wanted = less(c, (predicted - s->words[TARGET]) * 1000000 / rtt_us);
	u64 gained = (flow_count(&law->flows) * law->segment) >> 16;
	u64 most = x + (gained >> 16), least = x / 2;

	if (wanted >= most)
		return 0;
	if (wanted <= least)
		return ONE;
	u64 part = most - wanted, whole = most - least;
	u64 alpha = whole < ONE ? (part << 32) / whole : (part << 16) / (whole >> 16);
	u64 flight = min(x * rtt_us / 1000000, ONE - 1);
	u64 avg_w = max((flight << 32) / max(gained, 1), 1 << 16);
	u64 exponent = (negative_log2(&s->tables, max(less(ONE, alpha), 1)) << 16) / avg_w;

	return ONE - power_of_half(&s->tables, exponent);
}

/* Half of a * b, each at most ONE. */
static __always_inline u64 half_product(u64 a, u64 b)
{
	return a == ONE ? b << 31 : (a * b) >> 1;
}

static __always_inline void compute(struct law *law, const volatile struct settings *s, u64 now, u64 queue)
{
	u64 dt = law->is_computed ? min(less(now, law->computed_at), MAX_DT_NS) : 0;

	law->is_computed = 1;
	law->computed_at = now;
	u64 p = probability(law, s, queue);
	u64 tau = s->words[SMOOTHING] * rtt_of(law, s);
	u64 weight = (dt << 32) / max(dt + tau, 1);
	u64 before = law->p >> 31;

	if (p > before)
		law->p += half_product(p - before, weight);
	else
		law->p -= half_product(before - p, weight);
}

static __always_inline u64 law_advise(struct law *law, const volatile struct settings *s, const struct packet *packet, u64 *random)
{
	arrivals_on_packet(&law->arrivals, s->words[WINDOW], packet->now, packet->size);
	if (law->segment == 0)
		law->segment = packet->size << 16;
	else if (random_below(random, DRAWN) == 0)
		law->segment = (9 * law->segment + (packet->size << 16)) / 10;
	zombies_on_packet(&law->flows, packet->flow, random);
	for (int i = 0; i < TRIES; i++) {
		u64 rtt = try_advance(&law->tries[i], packet->now, packet->flow, random);

		if (rtt > 0) {
			u64 before = law->representative ? law->representative : s->words[INITIAL_RTT];

			law->representative = max((9 * before + rtt) / 10, 1);
		}
	}
	compute(law, s, packet->now, packet->backlog_bytes);
	return law->p >> 31;
}

static __always_inline void law_on_verdict(struct law *law, const volatile struct settings *s, const struct packet *packet, u32 verdict)
{
}

static __always_inline void law_show(const struct law *law, const volatile struct settings *s, struct shown *shown)
{
	shown->probability = law->p >> 31;
	shown->rtt_ns = rtt_of(law, s);
	shown->flows = flow_count(&law->flows);
}

#endif
