/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* PIE: crates/algorithms/src/queue/integer/pie.rs in C, line by line; the reasons stand there. */
#ifndef SUIMON_QUEUE_PIE_H
#define SUIMON_QUEUE_PIE_H

#include "law.h"

#define DISTANCES INDEPENDENT
#define POINT 56
#define ONE_P (1ULL << POINT)
#define ACCUMULATED_LEAST (ONE / 100 * 85)
#define ACCUMULATED_MOST (ONE / 10 * 85)
#define ADJUSTMENTS 64
#define MAX_BACKLOG (1ULL << 34)
#define MAX_TIME_NS 8000000000ULL

/* The words of the settings. */
enum { TARGET, TUPDATE, MAX_BURST, ALPHA, BETA, MEAN_PACKET, MARK_ECNTH };

struct law {
	u64 drop_prob;
	u64 accu_prob;
	u64 burst_used;
	u64 current_qdelay;
	u64 qdelay_old;
	u64 last_timestamp;
};

static __always_inline u64 scale(u64 p)
{
	if (p < ONE_P / 1000000)
		return 11;
	if (p < ONE_P / 100000)
		return 9;
	if (p < ONE_P / 10000)
		return 7;
	if (p < ONE_P / 1000)
		return 5;
	if (p < ONE_P / 100)
		return 3;
	if (p < ONE_P / 10)
		return 1;
	return 0;
}

static __always_inline void calculate_drop_prob(struct law *law, const volatile struct settings *s, u64 backlog)
{
	u64 rate = max(s->bytes_per_second, 1), target = s->words[TARGET];
	u64 delay = min(min(backlog, MAX_BACKLOG) * 1000000000 / rate, MAX_TIME_NS), old = law->qdelay_old;
	u64 up = s->words[ALPHA] * less(delay, target) + s->words[BETA] * less(delay, old);
	u64 down = s->words[ALPHA] * less(target, delay) + s->words[BETA] * less(old, delay);
	u64 halvings = scale(law->drop_prob);

	law->current_qdelay = delay;
	if (up >= down) {
		u64 change = (up - down) >> halvings;

		if (law->drop_prob >= ONE_P / 10)
			change = min(change, ONE_P / 50);
		law->drop_prob += change;
	} else {
		law->drop_prob = less(law->drop_prob, (down - up) >> halvings);
	}
	if (delay < target / 2 && old < target / 2)
		law->drop_prob -= law->drop_prob / 50;
	law->drop_prob = min(law->drop_prob, ONE_P);
	law->qdelay_old = delay;
	law->burst_used = min(law->burst_used + s->words[TUPDATE], s->words[MAX_BURST]);
}

static __always_inline void catch_up(struct law *law, const volatile struct settings *s, u64 now, u64 backlog)
{
	u64 tupdate = max(s->words[TUPDATE], 1);

	if (law->last_timestamp == 0)
		law->last_timestamp = now;
	for (int i = 0; i < ADJUSTMENTS; i++) {
		if (less(now, law->last_timestamp) < tupdate)
			return;
		law->last_timestamp += tupdate;
		calculate_drop_prob(law, s, backlog);
	}
	if (less(now, law->last_timestamp) >= tupdate) {
		law->drop_prob = 0;
		law->last_timestamp = now;
	}
}

static __always_inline int drop_early(struct law *law, const volatile struct settings *s, u64 backlog, u64 *random)
{
	if (law->qdelay_old < s->words[TARGET] / 2 && law->drop_prob < ONE_P / 5)
		return 0;
	if (backlog <= 2 * s->words[MEAN_PACKET])
		return 0;
	if (law->drop_prob == 0)
		law->accu_prob = 0;
	u64 p = law->drop_prob >> (POINT - 32);

	law->accu_prob += p;
	if (law->accu_prob < ACCUMULATED_LEAST)
		return 0;
	if (law->accu_prob >= ACCUMULATED_MOST)
		return 1;
	int drop = random_bits(random) < p;

	if (drop)
		law->accu_prob = 0;
	return drop;
}

static __always_inline u64 law_advise(struct law *law, const volatile struct settings *s, const struct packet *packet, u64 *random)
{
	catch_up(law, s, packet->now, packet->backlog_bytes);
	if (!drop_early(law, s, packet->backlog_bytes, random) || law->burst_used != s->words[MAX_BURST])
		return 0;
	law->accu_prob = 0;
	return law->drop_prob >> (POINT - 32) < s->words[MARK_ECNTH] ? ONE : ADVICE_DROP;
}

static __always_inline void law_on_verdict(struct law *law, const volatile struct settings *s, const struct packet *packet, u32 verdict)
{
	u64 half = s->words[TARGET] / 2;

	if (verdict == VERDICT_OVERFLOW)
		law->accu_prob = 0;
	if (law->drop_prob == 0 && law->current_qdelay < half && law->qdelay_old < half)
		law->burst_used = 0;
}

static __always_inline void law_show(const struct law *law, const volatile struct settings *s, struct shown *shown)
{
	shown->probability = law->drop_prob >> (POINT - 32);
}

#endif
