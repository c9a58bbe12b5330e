/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The common part of programs with cong_control: the kernel leaves all of the window to them, and the pacing rate. With it, what
 * they have to know of the path and of the application.
 */
#ifndef SUIMON_WINDOW_H
#define SUIMON_WINDOW_H

#include "kernel.h"

/* After this time without an ACK and nothing in flight, the other end may be elsewhere: measure anew. */
#define IDLE_FORGETS_US 10000000

/* How the connection's packets leave this host. */
struct way {
	u64 last_ack_us;
	u32 prior_ifindex;
	u32 from;		/* data sent before this sequence number may have gone another way */
	u8 is_old;		/* `from` is not acknowledged yet, so that no sample counts */
};

/* From now on, measurements of before are of another path. */
static __always_inline void leave_way(struct sock *sk, struct way *w)
{
	w->from = tcp_sk(sk)->snd_nxt;
	w->is_old = 1;
}

/* At the start of transmission: whether so long nothing came in that the other end may be elsewhere. */
static __always_inline int was_silent(struct sock *sk, const struct way *w)
{
	return w->last_ack_us && tcp_sk(sk)->tcp_mstamp > w->last_ack_us + IDLE_FORGETS_US;
}

static __always_inline int leaves_by_another_device(struct sock *sk, struct way *w)
{
	u32 ifindex = 0, before = w->prior_ifindex;

	if (sk->sk_dst_cache)
		ifindex = sk->sk_dst_cache->dev->ifindex;
	if (!ifindex || ifindex == before)
		return 0;
	w->prior_ifindex = ifindex;
	return before > 0;
}

/* Whether the segments that this ACK passes were sent this way. */
static __always_inline int went_this_way(const struct tcp_sock *tp, struct way *w)
{
	if (w->is_old && (s32)(tp->snd_una - w->from) > 0)
		w->is_old = 0;
	return !w->is_old;
}

/* As tcp_update_pacing_rate(): the rate also decides how many segments go down as one. */
static __always_inline void pace(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct netns_ipv4 *ipv4 = &sk->__sk_common.skc_net.net->ipv4;
	u64 rate = (u64)tp->mss_cache * ((1000000 / 100) << 3);

	rate *= tp->snd_cwnd < tp->snd_ssthresh / 2 ? ipv4->sysctl_tcp_pacing_ss_ratio : ipv4->sysctl_tcp_pacing_ca_ratio;
	rate *= max(tp->snd_cwnd, tp->packets_out);
	if (tp->srtt_us)
		rate /= tp->srtt_us;
	sk->sk_pacing_rate = min(rate, sk->sk_max_pacing_rate);
}

/* Nothing waits to be sent, and not because the send buffer is full: a writer that found it full sleeps until a third is free. */
static __always_inline int app_limited(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return tp->write_seq - tp->snd_nxt < tp->mss_cache && (u64)sk->sk_wmem_queued * 3 < (u64)sk->sk_sndbuf * 2;
}

/* rs is the last argument, and kernels before 6.10 give two; only the branch that this kernel has is checked. */
static __always_inline const struct rate_sample *rate_sample_of(u64 *ctx)
{
	u64 rs;

	if (this_kernel.cong_control_arguments == 4)
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(rs) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(rs) : "r"(ctx));
	return (const struct rate_sample *)rs;
}

#endif
