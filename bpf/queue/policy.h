/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * How a law's choices are carried out: crates/algorithms/src/queue/integer/mod.rs in C. A law defines, before this file is
 * included: struct law; DISTANCES; law_advise(); law_on_verdict(); law_show().
 */
#ifndef SUIMON_QUEUE_POLICY_H
#define SUIMON_QUEUE_POLICY_H

#include "law.h"

/* Packets since the last mark; NO_COUNT where the queue was short. */
#define NO_COUNT (~0ULL)
#define MAX_COUNT ((1ULL << 31) - 1)

struct policy {
	u64 count;
	u64 random;
	struct law law;
};

static __always_inline u64 mark_now(u64 p, u64 count)
{
	u64 due = count * p, left = ONE;

	if (DISTANCES == UNIFORM)
		left = less(ONE, due);
	if (DISTANCES == WAIT) {
		if (due < ONE)
			return 0;
		left = less(2 * ONE, due);
	}
	return p >= left ? ONE : (p << 32) / left;
}

static __always_inline int chooses(struct policy *policy, u64 p)
{
	u64 count = policy->count == NO_COUNT ? 0 : min(policy->count + 1, MAX_COUNT);
	u64 p_a = mark_now(p, count);
	int chosen = p_a >= ONE || (p_a > 0 && random_bits(&policy->random) < p_a);

	policy->count = chosen ? 0 : count;
	return chosen;
}

static __always_inline u32 verdict_on(struct policy *policy, const volatile struct settings *s, const struct packet *packet)
{
	u64 advice = law_advise(&policy->law, s, packet, &policy->random);

	if (packet->backlog_bytes + packet->size > s->buffer_bytes) {
		policy->count = 0;
		return VERDICT_OVERFLOW;
	}
	if (advice == ADVICE_CALM) {
		policy->count = NO_COUNT;
		return VERDICT_PASS;
	}
	if (advice == ADVICE_DROP) {
		policy->count = 0;
		return VERDICT_DROP;
	}
	if (!chooses(policy, advice))
		return VERDICT_PASS;
	return packet->ecn ? VERDICT_MARK : VERDICT_DROP;
}

static __always_inline u32 judge(struct policy *policy, const volatile struct settings *s, const struct packet *packet)
{
	u32 verdict = verdict_on(policy, s, packet);

	law_on_verdict(&policy->law, s, packet, verdict);
	return verdict;
}

#endif
