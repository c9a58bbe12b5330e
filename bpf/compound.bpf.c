// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * Compound TCP (Tan, Song, Zhang, Sridharan 2006), as crates/algorithms/src/congestion/compound.rs with alpha = 1/8, k = 3/4,
 * gamma = 30 and zeta = 1: Reno's loss window and a delay window that grows while the queue is short.
 */
#define ALGORITHM "compound"
#include "rounds.h"

#define GAMMA 30

/*
 * The whole part of the square root of 1 or more, by Newton's method from above: a step at least halves the distance, and the last
 * one is where the value would rise. No branches, since the verifier would follow each both ways.
 */
static __always_inline u64 square_root(u64 n)
{
	u64 root = 1ULL << 32;

#pragma unroll
	for (int i = 0; i < 40; i++) {
		long step = (long)((root + n / root) / 2 - root);

		root += step & (step >> 63);
	}
	return root;
}

static __always_inline void grow(struct sock *sk, struct connection *c, u32 acked)
{
	tcp_reno_cong_avoid(sk, tcp_sk(sk)->snd_una, acked);
}

static __always_inline void judge(struct sock *sk, struct connection *c, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 win = min(c->beg_snd_cwnd, 1 << 20), growth;
	u32 before = c->dwnd, loss_window, queued;

	grow(sk, c, acked);
	c->beg_snd_cwnd = tp->snd_cwnd;
	if (c->samples < ENOUGH_SAMPLES || tp->snd_cwnd <= tp->snd_ssthresh)
		return;
	queued = win * (max(c->min_rtt, c->base_rtt) - c->base_rtt) / max(c->min_rtt, 1);
	c->queued_halves = 2 * queued;
	if (queued < GAMMA) {
		/* (5): alpha win^k - 1, in whole segments. */
		growth = square_root(square_root(win * win * win)) / 8;
		c->dwnd += growth > 1 ? growth - 1 : 0;
	} else {
		c->dwnd -= min(queued, c->dwnd);
	}
	loss_window = tp->snd_cwnd > before ? tp->snd_cwnd - before : 0;
	tp->snd_cwnd = max(loss_window, 2) + c->dwnd;
}
