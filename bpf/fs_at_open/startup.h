/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Slow start, which is that of the algorithm below until the queue begins to stand (7). */
#ifndef SUIMON_FS_AT_OPEN_STARTUP_H
#define SUIMON_FS_AT_OPEN_STARTUP_H

#include "drain.h"

/* Samples of a round after which the queue is looked at. */
#define OPEN_SAMPLES_IN_STARTUP 8

static __always_inline void open_end_startup(struct fs_at_open *f, const struct open_ack *a, u64 rcv_bytes, u64 q)
{
	f->rcv_bytes = rcv_bytes;
	f->window = max(rcv_bytes + open_backlog(f, a->mss, q), 4 * a->mss);
	open_begin_drain(f, a, 1, 0);
}

/* In a round of slow start, once enough samples came: whether twice (2) waits. */
static __always_inline void open_look(struct fs_at_open *f, const struct open_ack *a)
{
	u64 low = f->round.low, q = open_queueing(&f->path, low), flight = a->flight_size + a->delivered;
	u64 rtt = low + f->way_back.wait;

	if (f->round.samples != OPEN_SAMPLES_IN_STARTUP || !f->round.end || open_is_over(&f->round, a))
		return;
	if (share_of(flight, q, rtt) > 2 * open_backlog(f, a->mss, q))
		open_end_startup(f, a, share_of(flight, open_rtt_min(&f->path), rtt), q);
}

static __always_inline void open_end_startup_round(struct fs_at_open *f, const struct open_ack *a, u64 q, u64 elapsed)
{
	u64 own = share_of(f->round.delivered, q, elapsed);

	if (open_loses(&f->round, OPEN_FULL_LOSES, a->mss)) {
		/* Lost beyond what a radio loses: the queue is full and too short to be seen. */
		f->window = max(f->round.delivered * 7 / 8, 4 * a->mss);
		f->mode = OPEN_STEADY;
	} else if (own > 2 * open_backlog(f, a->mss, q)) {
		open_end_startup(f, a, f->rcv_bytes, q);
	}
}

/* A loss, or a mark, in slow start. True where it is taken for a radio's. */
static __always_inline int open_lose_in_startup(struct fs_at_open *f, enum open_congestion kind, u64 flight_size, u64 mss,
						struct open_limits *l)
{
	u64 q = f->round.low == OPEN_NONE ? 0 : open_queueing(&f->path, f->round.low), kept;

	if (q > open_rtt_min(&f->path) / 4 || kind == OPEN_MARK) {
		f->window = max(open_forward_part(f, flight_size) / 2, 4 * mss);
		f->mode = OPEN_STEADY;
		l->ssthresh = f->window;
		return 0;
	}
	/* As (10) of the paper: nothing is queued, so the loss is the radio's. */
	f->bears_loss = 1;
	kept = max(l->ssthresh, l->cwnd);
	l->ssthresh = max(kept, 2 * mss);
	return 1;
}

/* The algorithm below stands still in recovery: where the loss was the radio's, slow start goes on all the same. */
static __always_inline void open_go_on_in_recovery(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	f->bears_loss &= a->in_recovery && f->mode == OPEN_STARTUP;
	if (f->bears_loss && !a->app_limited)
		l->cwnd += a->delivered;
}

#endif
