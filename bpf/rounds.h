/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The common part of algorithms that judge the queue once a round trip and leave recovery, undo and pacing to the kernel (cong_avoid
 * rather than cong_control). The including file names ALGORITHM and defines the actions at a round's end, a loss and a state change.
 */
#ifndef SUIMON_ROUNDS_H
#define SUIMON_ROUNDS_H

#include "kernel.h"
#include "connection.h"

/* Samples needed for a judgement: with fewer, all of them may be of delayed ACKs. */
#define ENOUGH_SAMPLES 3

struct connection {
	u64 id;
	struct counts counts;
	u32 records;
	u32 snd_una;
	u32 base_rtt;		/* 0: none yet */
	u32 min_rtt;		/* of this round, with the number of its samples */
	u32 samples;
	u32 beg_snd_una;	/* data sent in the round before this one: from here */
	u32 beg_snd_nxt;	/* to here; the round ends when this is acknowledged */
	u32 beg_snd_cwnd;
	u32 queued_halves;	/* the last judgement's, in half segments */
	u32 dwnd;
	u8 judging;		/* not in recovery */
};

static __always_inline void tell_values(struct values *v, const struct connection *c, const struct tcp_sock *tp)
{
	v->rtt_min_us = c->base_rtt;
	v->cwnd = tp->snd_cwnd;
	v->queued = c->queued_halves;
	v->dwnd = c->dwnd;
}

static __always_inline void on_end(struct sock *sk, struct connection *c)
{
}

#include "connections.h"

static __always_inline void tell(struct sock *sk, struct connection *c, u8 event, const struct ack_sample *sample)
{
	struct record *r = record_of(sk, c, event);

	if (!r)
		return;
	if (sample) {
		r->newly_acked = tcp_sk(sk)->snd_una - c->snd_una;
		r->delivered = sample->pkts_acked * tcp_sk(sk)->mss_cache;
		r->rtt_us = max(sample->rtt_us, 0);
	}
	bpf_ringbuf_submit(r, 0);
}

/* A round begins, and the samples of the one before are void. */
static __always_inline void begin_round(struct tcp_sock *tp, struct connection *c)
{
	c->beg_snd_nxt = tp->snd_nxt;
	c->min_rtt = 0;
	c->samples = 0;
	c->judging = 1;
}

static __always_inline struct connection *connection_of(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c;

	c = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (c && !c->id) {
		c->id = number_connection();
		c->snd_una = tp->snd_una;
		begin_round(tp, c);
		tell(sk, c, EVENT_START, 0);
	}
	return c;
}

static __always_inline int after(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

/* Before the end of a round of `c`, with enough samples: the algorithm's judgement. */
static __always_inline void judge(struct sock *sk, struct connection *c, u32 acked);
/* Growth of the window where nothing is judged. */
static __always_inline void grow(struct sock *sk, struct connection *c, u32 acked);

SEC("struct_ops/init")
int round_on_init(u64 *ctx)
{
	connection_of((struct sock *)ctx[0]);
	return 0;
}

SEC("struct_ops/pkts_acked")
int round_on_pkts_acked(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct connection *c = connection_of(sk);
	u32 rtt;

	if (!c)
		return 0;
	if (sample->rtt_us > 0) {
		rtt = sample->rtt_us;
		if (!c->base_rtt || rtt < c->base_rtt)
			c->base_rtt = rtt;
		if (!c->min_rtt || rtt < c->min_rtt)
			c->min_rtt = rtt;
		c->samples++;
	}
	tell(sk, c, EVENT_ACK, sample);
	c->snd_una = tcp_sk(sk)->snd_una;
	return 0;
}

SEC("struct_ops/cong_avoid")
int round_on_cong_avoid(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 ack = ctx[1], acked = ctx[2];
	struct connection *c = connection_of(sk);

	if (!c || !c->judging) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return 0;
	}
	if (!after(ack, c->beg_snd_nxt)) {
		grow(sk, c, acked);
		return 0;
	}
	judge(sk, c, acked);
	begin_round(tcp_sk(sk), c);
	return 0;
}

SEC("struct_ops/ssthresh")
u32 round_on_ssthresh(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = connection_of(sk);

	if (c) {
		if (tcp_sk(sk)->lost_out)
			c->counts.congestion++;
		else
			c->counts.marks++;
		c->dwnd = 0;
		tell(sk, c, tcp_sk(sk)->lost_out ? EVENT_LOSS : EVENT_MARK, 0);
	}
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/undo_cwnd")
u32 round_on_undo_cwnd(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = connection_of(sk);

	if (c) {
		c->counts.undone++;
		tell(sk, c, EVENT_UNDO, 0);
	}
	return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

SEC("struct_ops/set_state")
int round_on_set_state(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = known(sk);
	u8 state = ctx[1];

	if (!c)
		return 0;
	if (state == TCP_CA_OPEN)
		begin_round(tcp_sk(sk), c);
	else if (state >= TCP_CA_CWR)
		c->judging = 0;
	return 0;
}

/* From nothing in flight: the path may have changed meanwhile. */
static __always_inline void forget_path(struct sock *sk, struct connection *c)
{
	c->base_rtt = 0;
	begin_round(tcp_sk(sk), c);
}

SEC("struct_ops/cwnd_event_tx_start")
int round_on_tx_start(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = connection_of(sk);

	if (c)
		forget_path(sk, c);
	return 0;
}

SEC("struct_ops/cwnd_event")
int round_on_cwnd_event(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = connection_of(sk);
	u32 event = ctx[1];

	if (!c)
		return 0;
	if (event == CA_EVENT_LOSS) {
		c->counts.timeouts++;
		c->base_rtt = 0;
		tell(sk, c, EVENT_TIMEOUT, 0);
	} else if (event == CA_EVENT_TX_START || event == CA_EVENT_CWND_RESTART) {
		forget_path(sk, c);
	}
	return 0;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops ops = {
	.init = (void *)round_on_init,
	.release = (void *)on_release,
	.pkts_acked = (void *)round_on_pkts_acked,
	.cong_avoid = (void *)round_on_cong_avoid,
	.ssthresh = (void *)round_on_ssthresh,
	.undo_cwnd = (void *)round_on_undo_cwnd,
	.set_state = (void *)round_on_set_state,
	.cwnd_event = (void *)round_on_cwnd_event,
	.cwnd_event_tx_start = (void *)round_on_tx_start,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = ALGORITHM,
};

#endif
