// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * Vegas (Brakmo and Peterson, 1995), judged as crates/algorithms/src/congestion/vegas.rs does: between alpha = 1 and beta = 3
 * segments of its own in the queue, and slow start ends above gamma = 1.
 */
#define ALGORITHM "vegas"
#include "rounds.h"

#define ALPHA 1
#define BETA 3
#define GAMMA 1
#define MIN_WINDOW 2

static __always_inline void grow(struct sock *sk, struct connection *c, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_cwnd < tp->snd_ssthresh && tcp_is_cwnd_limited(tp))
		tcp_slow_start(tp, acked);
}

static __always_inline void judge(struct sock *sk, struct connection *c, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 old_wnd = (c->beg_snd_nxt - c->beg_snd_una) / max(tp->mss_cache, 1);
	u32 old_snd_cwnd = c->beg_snd_cwnd, target_halves, next, ends;

	c->beg_snd_una = c->beg_snd_nxt;
	c->beg_snd_cwnd = tp->snd_cwnd;
	if (c->samples < ENOUGH_SAMPLES) {
		tcp_reno_cong_avoid(sk, tp->snd_una, acked);
		return;
	}
	/* In half segments, rounded down. */
	target_halves = 2ULL * old_wnd * c->base_rtt / max(c->min_rtt, 1);
	target_halves = min(target_halves, 2 * old_wnd);
	c->queued_halves = 2 * old_wnd - target_halves;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		ends = c->queued_halves > 2 * GAMMA;
		/* One more than the rate calls for, since rounding down took up to one. */
		if (ends)
			tp->snd_cwnd = min(tp->snd_cwnd, max(target_halves / 2 + 1, MIN_WINDOW));
		/* The ACK that ends slow start grows the window like those before it. */
		grow(sk, c, acked);
		/* The threshold is so low that slow start comes back after a loss only. */
		if (ends)
			tp->snd_ssthresh = MIN_WINDOW;
	} else {
		/* Relative to the window that was judged: a change is seen one round late. */
		next = old_snd_cwnd;
		if (c->queued_halves > 2 * BETA)
			next = old_snd_cwnd - 1;
		else if (c->queued_halves < 2 * ALPHA)
			next = old_snd_cwnd + 1;
		if (next < tp->snd_cwnd && tp->snd_cwnd > MIN_WINDOW)
			tp->snd_cwnd = tp->snd_cwnd - 1;
		else if (next > tp->snd_cwnd && tcp_is_cwnd_limited(tp))
			tp->snd_cwnd = tp->snd_cwnd + 1;
	}
}
