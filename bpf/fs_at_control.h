/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * FS-AT as a congestion control of the kernel, over the algorithm below, inner_*().
 *
 * The kernel obeys one window, snd_cwnd. The algorithm below keeps its own in connection.cwnd; the kernel gets the smaller
 * of this window and `space`. With cong_control the kernel leaves all of the window to the program. So recovery by proportional rate
 * reduction (RFC 6937), growth in order only, the pacing rate, and the restart after idle times stand here.
 */
#ifndef SUIMON_FS_AT_CONTROL_H
#define SUIMON_FS_AT_CONTROL_H

#include "kernel.h"
#include "connection.h"
#include "fs_at.h"
#include "window.h"

/* The target never falls below this, in bytes. */
static const u64 min_target = 8000;

struct connection {
	u64 id;
	struct fs_at fs_at;
	struct way way;
	struct counts counts;
	u32 records;
	u32 snd_una;
	u32 cwnd;		/* of the algorithm below, in segments */
	u32 written;		/* snd_cwnd as this program set it; any other value is the kernel's. 0: take the kernel's */
	u32 prior_cwnd;		/* cwnd before the last reduction, for undo */
	u32 reduced_from;	/* RecoverFS of RFC 6937, in segments */
	u32 reduce_to;
	u32 prr_delivered;
	u64 share;		/* of the space of all connections to the client; 2^64 - 1 where none is shared */
	u64 client;		/* the id of the client that counts it */
	u64 client_flight;	/* as that client counts it */
	u64 before_silence;	/* acknowledged before the connection was last silent, in bytes */
	u32 client_weight;	/* as that client counts it */
	u8 reducing;		/* in recovery, or answering a mark */
	u8 by_space;		/* space, not cwnd, was the smaller */
	u8 radio;		/* the last loss was judged one of the radio */
};

static __always_inline void tell_values(struct values *v, const struct connection *c, const struct tcp_sock *tp)
{
	v->rtt_min_us = c->fs_at.rtt_min_us;
	v->rcv_bytes = c->fs_at.complete_rcv;
	v->target = c->fs_at.target;
	v->space = min(c->fs_at.space, c->share);
	v->cwnd = c->cwnd;
}

#include "client.h"

static __always_inline void on_end(struct sock *sk, struct connection *c)
{
	share_at_end(sk, c);
}

#include "connections.h"

static __always_inline void tell(struct sock *sk, struct connection *c, u8 event, const struct fs_at_ack *a)
{
	struct record *r = record_of(sk, c, event);

	if (!r)
		return;
	r->radio = c->radio;
	if (a) {
		r->newly_acked = tcp_sk(sk)->snd_una - c->snd_una;
		r->delivered = a->delivered;
		r->rtt_us = a->rtt_us;
		r->app_limited = a->app_limited;
	}
	bpf_ringbuf_submit(r, 0);
}

/* The connection's state, made where it is missing; null where the kernel has no memory left. */
static __always_inline struct connection *connection_of(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c;

	c = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (c && !c->id) {
		c->id = number_connection();
		c->cwnd = tp->snd_cwnd;
		c->snd_una = tp->snd_una;
		fs_at_start(&c->fs_at, (u64)c->cwnd * tp->mss_cache, min_target);
		c->share = ~0ULL;
		tell(sk, c, EVENT_START, 0);
	}
	return c;
}

static __always_inline void fs_at_init(struct sock *sk)
{
	struct connection *c;

	inner_init(sk);
	c = connection_of(sk);
	if (c)
		share_at_start(sk, c);
}

/* The kernel's window where the kernel moved it, else the own one. */
static __always_inline u32 current_cwnd(const struct tcp_sock *tp, const struct connection *c)
{
	u32 ours = once(c->cwnd), kernels = once(tp->snd_cwnd);

	return kernels == c->written ? ours : kernels;
}

/* Called where the kernel takes a loss, a timeout or a mark for congestion. */
static __always_inline u32 fs_at_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	u32 ssthresh, rcv;
	/* Nothing is lost, so the signal is a mark or a full queue of the host: the radio causes neither. */
	int lost = tp->lost_out > 0;

	if (!c)
		return inner_ssthresh(sk);
	c->cwnd = current_cwnd(tp, c);
	c->prior_cwnd = c->cwnd;
	c->radio = lost && fs_at_is_radio(&c->fs_at);
	if (c->radio) {
		/* (10) */
		ssthresh = max(tp->snd_ssthresh, c->cwnd);
		c->counts.radio++;
	} else {
		/* (11): snd_cwnd limited the flight, so the algorithm below reduces snd_cwnd. */
		rcv = c->fs_at.complete_rcv / max(tp->mss_cache, 1);
		ssthresh = inner_ssthresh(sk);
		ssthresh = max(ssthresh, rcv);
		if (lost)
			c->counts.congestion++;
		else
			c->counts.marks++;
	}
	c->reduce_to = min(ssthresh, c->cwnd);
	c->reduced_from = max(tp->snd_cwnd, 1);
	c->prr_delivered = 0;
	c->reducing = 1;
	tell(sk, c, lost ? EVENT_LOSS : EVENT_MARK, 0);
	return ssthresh;
}

static __always_inline u32 fs_at_undo_cwnd(struct sock *sk)
{
	struct connection *c = connection_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!c)
		return max(tp->snd_cwnd, tp->prior_cwnd);
	c->written = 0;
	c->reducing = 0;
	c->counts.undone++;
	tell(sk, c, EVENT_UNDO, 0);
	return max(tp->snd_cwnd, c->prior_cwnd);
}

static __always_inline void fs_at_set_state(struct sock *sk, u8 state)
{
	struct connection *c = known(sk);

	if (c && state == TCP_CA_LOSS) {
		/* The kernel has just set the window to the flight and one segment. */
		c->written = 0;
		c->reducing = 0;
	}
	if (!c || !c->radio)
		inner_set_state(sk, state);
}

/*
 * RFC 5681, section 4.1, as the kernel does where congestion control leaves the window to it: halved for each timeout that passed
 * with nothing in flight, down to the initial window.
 */
static __always_inline void restart_after_idle(struct sock *sk, struct connection *c)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 idle = (u32)bpf_jiffies64() - tp->lsndtime;
	u32 rto = max(inet_csk(sk)->icsk_rto, 1), halvings, floor, kept;

	if ((s32)idle <= (s32)rto)
		return;
	c->before_silence = tp->bytes_acked;
	if (!sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_slow_start_after_idle)
		return;
	c->cwnd = current_cwnd(tp, c);
	kept = (c->cwnd >> 1) + (c->cwnd >> 2);
	tp->snd_ssthresh = max(tp->snd_ssthresh, kept);
	halvings = idle / rto;
	floor = min(c->cwnd, 10);
	kept = halvings > 31 ? 0 : c->cwnd >> halvings;
	c->cwnd = max(kept, floor);
	tp->snd_cwnd = min(tp->snd_cwnd, c->cwnd);
	c->written = tp->snd_cwnd;
}

static __always_inline void begin_anew(struct sock *sk, struct connection *c)
{
	fs_at_forget_path(&c->fs_at);
	leave_way(sk, &c->way);
	c->counts.paths++;
	tell(sk, c, EVENT_PATH, 0);
}

/* Transmission starts with nothing in flight. */
static __always_inline void fs_at_tx_start(struct sock *sk)
{
	struct connection *c = connection_of(sk);

	inner_tx_start(sk);
	if (!c)
		return;
	restart_after_idle(sk, c);
	share_at_start(sk, c);
	if (was_silent(sk, &c->way))
		begin_anew(sk, c);
}

static __always_inline void fs_at_cwnd_event(struct sock *sk, u32 event)
{
	struct connection *c;

	if (event == CA_EVENT_TX_START) {
		fs_at_tx_start(sk);
		return;
	}
	c = connection_of(sk);
	inner_cwnd_event(sk, event);
	if (c && event == CA_EVENT_LOSS) {
		c->counts.timeouts++;
		tell(sk, c, EVENT_TIMEOUT, 0);
	}
}

/* RFC 6937, section 3.1, with the slow-start reduction bound, as tcp_cwnd_reduction() has it. */
static __always_inline u32 proportional(struct tcp_sock *tp, struct connection *c, u32 acked, int advances)
{
	u32 flight = tcp_packets_in_flight(tp), due, sndcnt;

	c->prr_delivered += acked;
	if (flight > c->reduce_to) {
		due = ((u64)c->reduce_to * c->prr_delivered + c->reduced_from - 1) / c->reduced_from;
		sndcnt = due > tp->prr_out ? due - tp->prr_out : 0;
	} else {
		due = c->prr_delivered > tp->prr_out ? c->prr_delivered - tp->prr_out : 0;
		sndcnt = max(due, acked) + advances;
		due = c->reduce_to - flight;
		sndcnt = min(sndcnt, due);
	}
	/* The first retransmission is never held back. */
	if (!tp->prr_out)
		sndcnt = max(sndcnt, 1);
	return flight + sndcnt;
}

/* The window of the algorithm below after this ACK. */
static __always_inline void move_cwnd(struct sock *sk, struct connection *c, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 state = tcp_ca_state(sk), acked = rs->acked_sacked;
	int advances = tp->snd_una != c->snd_una;

	c->cwnd = current_cwnd(tp, c);
	if (state == TCP_CA_RECOVERY || state == TCP_CA_CWR) {
		if (acked)
			c->cwnd = proportional(tp, c, acked, advances && rs->losses <= 0);
		return;
	}
	if (c->reducing) {
		/* The ACK that ends recovery. After an undo the kernel's window was taken above. */
		c->reducing = 0;
		c->cwnd = max(c->reduce_to, 1);
		return;
	}
	/* In order only, where reordering is not the rule; and only a window that holds the sender back grows. */
	if (!advances && !(acked && tp->reordering > sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_reordering))
		return;
	if (c->by_space)
		return;
	tp->snd_cwnd = c->cwnd;
	inner_cong_avoid(sk, tp->snd_una, acked);
	c->cwnd = tp->snd_cwnd;
}

/* min(cwnd, space) in segments, except that neither retransmissions nor the two probes of F-RTO wait for space. */
static __always_inline void limit_flight(struct sock *sk, struct connection *c)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 state = tcp_ca_state(sk), probes = tcp_packets_in_flight(tp) + 2;
	u64 space = min(c->fs_at.space, c->share);
	u32 limit = c->cwnd;

	space = max(space / max(tp->mss_cache, 1), 1);
	if (state == TCP_CA_LOSS)
		space = max(space, probes);
	if (!(state >= TCP_CA_RECOVERY && tp->lost_out > tp->retrans_out))
		limit = min(space, c->cwnd);
	c->by_space = limit < c->cwnd;
	c->written = max(limit, 1);
	tp->snd_cwnd = c->written;
}

static __always_inline void fs_at_cong_control(struct sock *sk, const struct rate_sample *rs)
{
	struct connection *c = connection_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_at_ack a = {};

	if (!c) {
		inner_cong_avoid(sk, tp->snd_una, rs->acked_sacked);
		pace(sk);
		return;
	}
	if (leaves_by_another_device(sk, &c->way)) {
		begin_anew(sk, c);
		share_anew(sk);
	}
	move_cwnd(sk, c, rs);
	a.now_us = tp->tcp_mstamp;
	a.delivered = (u64)rs->acked_sacked * tp->mss_cache;
	a.flight_size = (u64)tcp_packets_in_flight(tp) * tp->mss_cache;
	a.snd_wnd = tp->snd_wnd;
	a.mss = tp->mss_cache;
	/* A sample is of segments that snd_una passed and that went this path: duplicate ACKs give none. */
	if (went_this_way(tp, &c->way) && tp->snd_una != c->snd_una && rs->rtt_us > 0)
		a.rtt_us = rs->rtt_us;
	a.app_limited = app_limited(sk);
	fs_at_on_ack(&c->fs_at, &a, min_target);
	share_on_ack(sk, c, &a);
	limit_flight(sk, c);
	pace(sk);
	tell(sk, c, EVENT_ACK, &a);
	c->snd_una = tp->snd_una;
	c->way.last_ack_us = a.now_us;
}

/* The entry points. A program gets its arguments as an array of words. */

SEC("struct_ops/init")
int fs_at_on_init(u64 *ctx)
{
	fs_at_init((struct sock *)ctx[0]);
	return 0;
}

SEC("struct_ops/ssthresh")
u32 fs_at_on_ssthresh(u64 *ctx)
{
	return fs_at_ssthresh((struct sock *)ctx[0]);
}

SEC("struct_ops/undo_cwnd")
u32 fs_at_on_undo_cwnd(u64 *ctx)
{
	return fs_at_undo_cwnd((struct sock *)ctx[0]);
}

SEC("struct_ops/set_state")
int fs_at_on_set_state(u64 *ctx)
{
	fs_at_set_state((struct sock *)ctx[0], ctx[1]);
	return 0;
}

SEC("struct_ops/cwnd_event")
int fs_at_on_cwnd_event(u64 *ctx)
{
	fs_at_cwnd_event((struct sock *)ctx[0], ctx[1]);
	return 0;
}

SEC("struct_ops/cwnd_event_tx_start")
int fs_at_on_tx_start(u64 *ctx)
{
	fs_at_tx_start((struct sock *)ctx[0]);
	return 0;
}

SEC("struct_ops/cong_control")
int fs_at_on_cong_control(u64 *ctx)
{
	fs_at_cong_control((struct sock *)ctx[0], rate_sample_of(ctx));
	return 0;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops ops = {
	.init = (void *)fs_at_on_init,
	.release = (void *)on_release,
	.ssthresh = (void *)fs_at_on_ssthresh,
	.undo_cwnd = (void *)fs_at_on_undo_cwnd,
	.set_state = (void *)fs_at_on_set_state,
	.cwnd_event = (void *)fs_at_on_cwnd_event,
	.cwnd_event_tx_start = (void *)fs_at_on_tx_start,
#ifdef INNER_PKTS_ACKED
	.pkts_acked = (void *)INNER_PKTS_ACKED,
#endif
	.cong_control = (void *)fs_at_on_cong_control,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = ALGORITHM,
};

#endif
