// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * The open mode of FS-AT over the kernel's CUBIC, as a congestion control of the kernel.
 *
 * The kernel obeys one window, snd_cwnd. The limits of the algorithm are kept in bytes, and the kernel gets the smaller of cwnd and
 * space in whole segments. As in the simulator, the window is the algorithm's own in recovery and after silence too.
 */
#define ALGORITHM "fs_at_open"

#include "fs_at_cubic.h"
#include "connection.h"
#include "fs_at_open.h"
#include "window.h"

struct connection {
	u64 id;
	struct fs_at_open open;
	struct open_limits limits;
	struct way way;
	struct counts counts;
	u64 began_us;
	u64 acknowledged;	/* bytes since the connection began */
	u32 records;
	u32 snd_una;
	u32 written;		/* snd_cwnd as this program set it; any other value is the kernel's. 0: take the kernel's */
	u32 prior_cwnd;		/* cwnd before the last congestion, for undo */
	u8 radio;		/* the last loss was judged one of the radio */
	u8 paces;		/* this program has the kernel's timer pace */
};

static __always_inline u64 mss_of(const struct tcp_sock *tp)
{
	return max(tp->mss_cache, 1);
}

static __always_inline void tell_values(struct values *v, const struct connection *c, const struct tcp_sock *tp)
{
	v->rtt_min_us = open_rtt_min(&c->open.path);
	v->rcv_bytes = c->open.rcv_bytes;
	v->target = c->open.window;
	v->space = c->limits.space == OPEN_NONE ? 0 : c->limits.space;
	v->cwnd = c->limits.cwnd / mss_of(tp);
	v->queueing_us = c->open.queueing;
	v->mode = c->open.mode;
}

static __always_inline void on_end(struct sock *sk, struct connection *c)
{
}

#include "connections.h"

/* What led to an event's decision, and the decision, in segments. */
struct decision {
	u32 kernel_cwnd;
	u32 below;
	u32 decided;
	u32 rtt_us;
	u32 prior_flight_size;
	u32 ts_val;
};

static __always_inline void tell(struct sock *sk, struct connection *c, u8 event, const struct decision *d, const struct open_ack *a)
{
	struct record *r = record_of(sk, c, event);

	if (!r)
		return;
	r->radio = c->radio;
	r->outstanding = tcp_sk(sk)->snd_nxt - tcp_sk(sk)->snd_una;
	r->kernel_cwnd = d->kernel_cwnd;
	r->below = d->below;
	r->decided = d->decided;
	r->rtt_us = d->rtt_us;
	r->prior_flight_size = d->prior_flight_size;
	r->ts_val = d->ts_val;
	if (a) {
		r->newly_acked = a->newly_acked;
		r->delivered = a->delivered;
		r->app_limited = a->app_limited;
	}
	bpf_ringbuf_submit(r, 0);
}

static __always_inline u32 in_segments(const struct tcp_sock *tp, u64 bytes)
{
	return min(bytes / mss_of(tp), TCP_INFINITE_SSTHRESH);
}

/* The connection's state, made where it is missing; null where the kernel has no memory left. */
static __always_inline struct connection *connection_of(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct decision d = {};
	struct connection *c;

	c = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (c && !c->id) {
		c->id = number_connection();
		c->began_us = tp->tcp_mstamp;
		c->snd_una = tp->snd_una;
		/* The handshake's; unset where that was ambiguous. */
		d.rtt_us = tp->rtt_min.s[0].v;
		if (d.rtt_us == ~0U)
			d.rtt_us = 0;
		d.ts_val = tp->rx_opt.rcv_tsval;
		open_start(&c->open, d.rtt_us, d.ts_val);
		c->limits.space = OPEN_NONE;
		d.kernel_cwnd = tp->snd_cwnd;
		c->limits.cwnd = d.kernel_cwnd * mss_of(tp);
		c->written = d.kernel_cwnd;
		tell(sk, c, EVENT_START, &d, 0);
	}
	return c;
}

/* The kernel's threshold, and its window where it moved that. */
static __always_inline void take_limits(const struct tcp_sock *tp, struct connection *c, struct decision *d)
{
	u32 kernels = once(tp->snd_cwnd);

	c->limits.ssthresh = tp->snd_ssthresh * mss_of(tp);
	if (kernels != c->written) {
		d->kernel_cwnd = kernels;
		c->limits.cwnd = kernels * mss_of(tp);
	}
}

/* min(cwnd, space) in segments. */
static __always_inline u32 decided_cwnd(const struct tcp_sock *tp, const struct connection *c)
{
	u64 cwnd = in_segments(tp, min(c->limits.cwnd, c->limits.space));

	return max(cwnd, 1);
}

/* Hands the window down, except that neither retransmissions nor the two probes of F-RTO wait for space. */
static __always_inline void limit_flight(struct sock *sk, struct connection *c, u32 decided)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 state = tcp_ca_state(sk), flight = tcp_packets_in_flight(tp), cwnd = in_segments(tp, c->limits.cwnd), limit = decided;

	if (state >= TCP_CA_RECOVERY && tp->lost_out > tp->retrans_out)
		limit = max(limit, cwnd);
	if (state == TCP_CA_LOSS)
		limit = max(limit, min(cwnd, flight + 2));
	/* The first retransmission is never held back. */
	if (state == TCP_CA_RECOVERY && !tp->prr_out)
		limit = max(limit, flight + 1);
	c->written = limit;
	tp->snd_cwnd = limit;
}

/* A lost segment, a mark, or the timer, which is no longer pending once it has run out. */
static __always_inline enum open_congestion kind_of(struct sock *sk)
{
	if (!inet_csk(sk)->icsk_pending)
		return OPEN_TIMEOUT;
	return tcp_sk(sk)->lost_out ? OPEN_LOSS : OPEN_MARK;
}

/* Called where the kernel takes a loss, a timeout or a mark for congestion. */
static __always_inline u32 open_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	enum open_congestion kind = kind_of(sk);
	struct decision d = {};
	u64 flight_size;
	u32 threshold;

	if (!c)
		return inner_ssthresh(sk);
	take_limits(tp, c, &d);
	c->prior_cwnd = in_segments(tp, c->limits.cwnd);
	if (open_asks_below(&c->open, kind, &c->limits)) {
		tp->snd_cwnd = in_segments(tp, c->limits.cwnd);
		d.below = inner_ssthresh(sk);
		c->limits.ssthresh = d.below * mss_of(tp);
	}
	/* With those that were just found lost. */
	flight_size = (u64)(tcp_packets_in_flight(tp) + tp->lost_out) * mss_of(tp);
	c->radio = open_on_congestion(&c->open, kind, tp->tcp_mstamp - c->began_us, flight_size, mss_of(tp), &c->limits);
	threshold = in_segments(tp, c->limits.ssthresh);
	d.decided = threshold;
	d.prior_flight_size = flight_size;
	if (kind == OPEN_MARK)
		c->counts.marks++;
	else if (c->radio)
		c->counts.radio++;
	else
		c->counts.congestion++;
	limit_flight(sk, c, decided_cwnd(tp, c));
	tell(sk, c, kind == OPEN_LOSS ? EVENT_LOSS : kind == OPEN_MARK ? EVENT_MARK : EVENT_TIMEOUT, &d, 0);
	return max(threshold, 2);
}

static __always_inline u32 open_undo_cwnd(struct sock *sk)
{
	struct connection *c = connection_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct decision d = {};

	if (!c)
		return max(tp->snd_cwnd, tp->prior_cwnd);
	c->written = 0;
	c->counts.undone++;
	tell(sk, c, EVENT_UNDO, &d, 0);
	return max(tp->snd_cwnd, c->prior_cwnd);
}

static __always_inline void open_set_state(struct sock *sk, u8 state)
{
	struct connection *c = known(sk);

	if (c && state == TCP_CA_LOSS) {
		/* The kernel sets the window to the flight and one segment. */
		c->written = 0;
		c->counts.timeouts++;
	}
	if (!c || open_below_rules(&c->open))
		inner_set_state(sk, state);
}

static __always_inline void begin_anew(struct sock *sk, struct connection *c)
{
	struct decision d = {};

	take_limits(tcp_sk(sk), c, &d);
	open_forget_path(&c->open, &c->limits);
	leave_way(sk, &c->way);
	c->counts.paths++;
	tell(sk, c, EVENT_PATH, &d, 0);
}

/* Transmission starts with nothing in flight. */
static __always_inline void open_tx_start(struct sock *sk)
{
	struct connection *c = connection_of(sk);

	inner_tx_start(sk);
	if (c && was_silent(sk, &c->way))
		begin_anew(sk, c);
}

/* The window of the algorithm below after this ACK. */
static __always_inline void grow_below(struct sock *sk, struct connection *c, u32 acked, struct decision *d)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 state = tcp_ca_state(sk), before = in_segments(tp, c->limits.cwnd);

	if (state == TCP_CA_RECOVERY || state == TCP_CA_CWR)
		return;
	/* In order only, where reordering is not the rule. */
	if (tp->snd_una == c->snd_una && !(acked && tp->reordering > sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_reordering))
		return;
	tp->snd_cwnd = before;
	inner_cong_avoid(sk, tp->snd_una, acked);
	if (tp->snd_cwnd != before) {
		d->below = tp->snd_cwnd;
		c->limits.cwnd = d->below * mss_of(tp);
	}
}

/* At `rate` in bytes a second, by the kernel's own timer where no queue of this host paces; 0: as CUBIC. */
static __always_inline void pace_beside(struct sock *sk, struct connection *c, u64 rate)
{
	if (rate) {
		sk->sk_pacing_rate = min(rate, sk->sk_max_pacing_rate);
		if (sk->sk_pacing_status == SK_PACING_NONE) {
			sk->sk_pacing_status = SK_PACING_NEEDED;
			c->paces = 1;
		}
		return;
	}
	pace(sk);
	if (c->paces && sk->sk_pacing_status == SK_PACING_NEEDED)
		sk->sk_pacing_status = SK_PACING_NONE;
	c->paces = 0;
}

static __always_inline void open_cong_control(struct sock *sk, const struct rate_sample *rs)
{
	struct connection *c = connection_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct open_ack a = {};
	struct decision d = {};
	u64 mss = mss_of(tp);
	u8 before;

	if (!c) {
		inner_cong_avoid(sk, tp->snd_una, rs->acked_sacked);
		pace(sk);
		return;
	}
	if (leaves_by_another_device(sk, &c->way))
		begin_anew(sk, c);
	take_limits(tp, c, &d);
	a.now = tp->tcp_mstamp - c->began_us;
	a.newly_acked = tp->snd_una - c->snd_una;
	c->acknowledged += a.newly_acked;
	a.snd_una = c->acknowledged;
	a.snd_nxt = a.snd_una + (tp->snd_nxt - tp->snd_una);
	a.delivered = rs->acked_sacked * mss;
	a.flight_size = tcp_packets_in_flight(tp) * mss;
	a.prior_flight_size = rs->prior_in_flight * mss;
	a.snd_wnd = tp->snd_wnd;
	a.mss = mss;
	if (went_this_way(tp, &c->way) && rs->rtt_us > 0)
		a.rtt = rs->rtt_us;
	a.ts_val = tp->rx_opt.rcv_tsval;
	a.app_limited = app_limited(sk);
	a.in_recovery = tcp_ca_state(sk) == TCP_CA_RECOVERY;
	open_sample(&c->open, &a);
	if (open_below_rules(&c->open))
		grow_below(sk, c, rs->acked_sacked, &d);
	before = c->open.mode;
	open_on_ack(&c->open, &a, &c->limits);
	if (open_takes_up(&c->open, before)) {
		tp->snd_cwnd = in_segments(tp, c->limits.cwnd);
		inner_ssthresh(sk);
	}
	d.decided = decided_cwnd(tp, c);
	d.rtt_us = a.rtt;
	d.ts_val = a.ts_val;
	d.prior_flight_size = a.prior_flight_size;
	tp->snd_ssthresh = max(in_segments(tp, c->limits.ssthresh), 2);
	limit_flight(sk, c, d.decided);
	pace_beside(sk, c, open_pacing(&c->open, a.now, mss));
	tell(sk, c, EVENT_ACK, &d, &a);
	c->snd_una = tp->snd_una;
	c->way.last_ack_us = tp->tcp_mstamp;
}

/* The entry points. A program gets its arguments as an array of words. */

SEC("struct_ops/init")
int open_on_init(u64 *ctx)
{
	inner_init((struct sock *)ctx[0]);
	connection_of((struct sock *)ctx[0]);
	return 0;
}

SEC("struct_ops/ssthresh")
u32 open_on_ssthresh(u64 *ctx)
{
	return open_ssthresh((struct sock *)ctx[0]);
}

SEC("struct_ops/undo_cwnd")
u32 open_on_undo_cwnd(u64 *ctx)
{
	return open_undo_cwnd((struct sock *)ctx[0]);
}

SEC("struct_ops/set_state")
int open_on_set_state(u64 *ctx)
{
	open_set_state((struct sock *)ctx[0], ctx[1]);
	return 0;
}

SEC("struct_ops/cwnd_event")
int open_on_cwnd_event(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 event = ctx[1];

	if (event == CA_EVENT_TX_START)
		open_tx_start(sk);
	else
		inner_cwnd_event(sk, event);
	return 0;
}

SEC("struct_ops/cwnd_event_tx_start")
int open_on_tx_start(u64 *ctx)
{
	open_tx_start((struct sock *)ctx[0]);
	return 0;
}

/* Not in slow start, where CUBIC would end it by HyStart: the open mode looks for the queue itself (7). */
SEC("struct_ops/pkts_acked")
int open_on_pkts_acked(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];

	if (tcp_sk(sk)->snd_cwnd >= tcp_sk(sk)->snd_ssthresh)
		cubictcp_acked(sk, (const struct ack_sample *)ctx[1]);
	return 0;
}

SEC("struct_ops/cong_control")
int open_on_cong_control(u64 *ctx)
{
	open_cong_control((struct sock *)ctx[0], rate_sample_of(ctx));
	return 0;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops ops = {
	.init = (void *)open_on_init,
	.release = (void *)on_release,
	.ssthresh = (void *)open_on_ssthresh,
	.undo_cwnd = (void *)open_on_undo_cwnd,
	.set_state = (void *)open_on_set_state,
	.cwnd_event = (void *)open_on_cwnd_event,
	.cwnd_event_tx_start = (void *)open_on_tx_start,
	.pkts_acked = (void *)open_on_pkts_acked,
	.cong_control = (void *)open_on_cong_control,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = ALGORITHM,
};
