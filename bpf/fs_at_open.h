/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The open mode of FS-AT, for queues that flows share: its state and its arithmetic, without kernel and floats. This is the twin of
 * crates/algorithms/src/congestion/fs_at_open.rs with its defaults, in the same modules, and tests hold the two together bit by bit.
 * Equation numbers are those of docs/algorithms/fs-at-open.md; quantities are in bytes and microseconds, times since the connection
 * began.
 */
#ifndef SUIMON_FS_AT_OPEN_H
#define SUIMON_FS_AT_OPEN_H

#include "fs_at_open/alone.h"
#include "fs_at_open/course.h"
#include "fs_at_open/drain.h"
#include "fs_at_open/path.h"
#include "fs_at_open/reverse.h"
#include "fs_at_open/rivals.h"
#include "fs_at_open/startup.h"
#include "fs_at_open/state.h"
#include "fs_at_open/trial.h"
#include "fs_at_open/varying.h"

/* Samples of a round: with fewer, all may be of delayed ACKs, and jitter hides a queue from fewer in a trial. */
#define OPEN_ENOUGH_SAMPLES 4
#define OPEN_SAMPLES_IN_TRIAL 8

static __always_inline void open_start(struct fs_at_open *f, u32 rtt, u32 ts_val)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->mode = OPEN_STARTUP;
	f->round.low = OPEN_NONE;
	/* The handshake's round trip is the first, before the flow's own burst. */
	if (!rtt)
		return;
	if (ts_val)
		open_hear(&f->way_back, 0, ts_val);
	open_sample_path(&f->path, 0, min(rtt, OPEN_MOST_RTT), OPEN_AGE);
}

static __always_inline void open_end_steady_round(struct fs_at_open *f, const struct open_ack *a, u64 last, u64 low, u64 q,
						  u64 elapsed, u64 last_q, int is_path, struct open_limits *l)
{
	u64 before = f->window;
	int is_busy;

	if (f->trial.left) {
		open_end_trial_round(f, a, q, l);
		return;
	}
	if (f->drains.resting) {
		f->drains.resting--;
		return;
	}
	if (open_gives_way(f, a->now, last, low)) {
		f->drains.resting = OPEN_ROUNDS_TO_REFILL;
		return;
	}
	if (is_path) {
		open_take_path(f, a->now, low);
		return;
	}
	if (open_is_near_min(&f->path, low) && open_is_trial_due(f, a->now, a->mss)) {
		open_begin_trial(f, a, l);
		return;
	}
	f->longest[0] = max(f->longest[0], q);
	f->mean_queueing = f->mean_queueing ? (7 * f->mean_queueing + q) / 8 : q;
	is_busy = open_is_busy(f, a->now);
	/* A queue beside traffic the other way moves, whatever the link does. */
	if (!is_busy)
		open_vary(&f->variation, last_q, low, q);
	/* Where the flow is alone, each acknowledgement moves the window. */
	if (!f->alone.is_known && open_varies(f))
		open_follow_link(f, a->mss, q, elapsed);
	else if (!f->alone.is_known)
		open_move_window(f, a->mss, low, q);
	if (is_busy)
		open_limit_growth(f, before, a->mss, low, elapsed);
	if (open_others_fill(f, a->now, q))
		open_begin_competition(f, a, l);
	else if (open_is_drain_due(f, a->now))
		open_begin_drain(f, a, 0, 0);
}

static __always_inline void open_end_round(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	u64 last = f->low, low = f->round.low, elapsed = max(less(open_unwaited(f, a->now), f->round.began), 1), q, last_q;
	int is_path;

	open_judge_alone(f);
	if (f->round.app_limited)
		return;
	q = open_queueing(&f->path, low);
	is_path = open_is_path(f, low, a->mss);
	f->trial.delivered += f->round.delivered;
	f->trial.lost_bytes += f->round.lost;
	last_q = open_take_last(&f->variation);
	f->queueing = q;
	f->rcv_bytes = share_of(f->round.delivered, open_rtt_min(&f->path), elapsed);
	if (f->mode == OPEN_STARTUP) {
		open_end_startup_round(f, a, q, elapsed);
	} else if (f->mode == OPEN_STEADY) {
		open_end_steady_round(f, a, last, low, q, elapsed, last_q, is_path, l);
	} else if (f->mode == OPEN_COMPETING) {
		open_end_competing_round(f, a, low, l);
	} else if (f->mode == OPEN_HOLDING) {
		open_end_held_round(f, a, low, l);
	}
}

static __always_inline void open_apply(const struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	u64 received = open_received(f), window = max(f->window, 2 * a->mss) + received;

	if (f->mode == OPEN_STARTUP || f->mode == OPEN_COMPETING) {
		l->space = OPEN_NONE;
		/* The first retransmission may have needed more. */
		if (a->in_recovery && f->mode == OPEN_COMPETING)
			l->cwnd = min(l->cwnd, l->ssthresh);
		return;
	}
	l->space = f->mode == OPEN_DRAINING ? f->drain.target + received : window;
	if (a->newly_acked) {
		l->cwnd = window;
		l->ssthresh = min(l->ssthresh, window);
	}
}

/* An acknowledgement comes in; the algorithm below moves cwnd behind this where open_below_rules(), and then comes open_on_ack(). */
static __always_inline void open_sample(struct fs_at_open *f, const struct open_ack *a)
{
	u64 rtt = min(a->rtt, OPEN_MOST_RTT);

	open_hear_peer(f, a);
	if (!rtt)
		return;
	rtt = open_without_wait(f, a->now, rtt);
	open_measure(f, a->now, rtt);
	f->round.low = min(f->round.low, rtt);
	f->round.samples++;
	open_count_gap(f, a->now, rtt);
	if (f->mode == OPEN_STARTUP)
		open_look(f, a);
	open_follow_rise(f, a, rtt);
}

static __always_inline u64 open_enough_samples(const struct fs_at_open *f)
{
	return f->trial.left ? OPEN_SAMPLES_IN_TRIAL : OPEN_ENOUGH_SAMPLES;
}

static __always_inline int open_below_rules(const struct fs_at_open *f)
{
	return f->mode == OPEN_STARTUP || f->mode == OPEN_COMPETING;
}

static __always_inline void open_on_ack(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	open_go_on_in_recovery(f, a, l);
	open_count(&f->round, a);
	if (!open_rtt_min(&f->path))
		return;
	if (f->mode == OPEN_STARTUP) {
		f->drains.grown = a->now;
		f->drains.awaits_second = 1;
	}
	if (open_has_become_shorter(&f->path))
		open_join_drain(f, a);
	open_follow_alone(f, a);
	if (f->mode == OPEN_DRAINING) {
		open_advance_drain(f, a, l);
	} else if (!f->round.end) {
		open_begin_round(f, a);
	} else if (open_drains_at_once(f, a->now)) {
		open_begin_drain(f, a, 0, 0);
	} else if (open_is_over(&f->round, a) && f->round.samples >= open_enough_samples(f)) {
		open_end_round(f, a, l);
		if (f->mode != OPEN_DRAINING)
			open_begin_round(f, a);
	}
	open_apply(f, a, l);
}

/* Whether competition began with this acknowledgement, which found the mode `before`: the algorithm below then takes cwnd for the
 * window before a loss, so that its curve begins here. That of its last competition would be steep by now. */
static __always_inline int open_takes_up(const struct fs_at_open *f, u8 before)
{
	return f->mode == OPEN_COMPETING && before != OPEN_COMPETING;
}

/* Whether the algorithm below answers this congestion; it does so before open_on_congestion(), with the window that stands in cwnd. */
static __always_inline int open_asks_below(const struct fs_at_open *f, enum open_congestion kind, struct open_limits *l)
{
	if (f->mode == OPEN_DRAINING && f->drain.competing) {
		l->cwnd = f->window;
		return 1;
	}
	if (f->mode == OPEN_HOLDING)
		return open_is_filled(f, kind);
	return f->mode == OPEN_COMPETING || (f->mode == OPEN_STARTUP && kind == OPEN_TIMEOUT);
}

/* The network is congested, or seems to be, at `now`. True where the loss is taken for a radio's. */
static __always_inline int open_on_congestion(struct fs_at_open *f, enum open_congestion kind, u64 now, u64 flight_size, u64 mss,
					      struct open_limits *l)
{
	u8 was_held = f->mode == OPEN_HOLDING && open_is_filled(f, kind);
	u64 before = f->window, kept;

	if (was_held) {
		f->mode = OPEN_COMPETING;
		f->drains.last = now;
	}
	if (f->mode == OPEN_COMPETING || (f->mode == OPEN_DRAINING && f->drain.competing)) {
		kept = min(l->cwnd, l->ssthresh);
		l->cwnd = max(kept, mss);
		if (f->mode == OPEN_DRAINING)
			f->window = max(l->cwnd, 2 * mss);
		else if (kind == OPEN_LOSS)
			open_lose(f, now);
		if (was_held)
			open_put_off(&f->rivals, now + OPEN_COMPETE_ON * open_period(f));
		return 0;
	}
	if (f->mode == OPEN_STARTUP) {
		if (kind == OPEN_TIMEOUT)
			return 0;
		return open_lose_in_startup(f, kind, flight_size, mss, l);
	}
	if (kind == OPEN_TIMEOUT) {
		/* A radio that was silent goes on as before: no more than it is known to hold. */
		f->window = min(f->window, max(f->rcv_bytes, 2 * mss));
		l->ssthresh = max(f->window, 2 * mss);
		return 1;
	}
	if (kind == OPEN_MARK) {
		/* A mark was set by a queue: the radio does not mark. */
		f->trial.congestions++;
		f->trial.marks++;
		f->window = max(f->window / 8 * 7, 2 * mss);
		l->ssthresh = f->window;
		return 0;
	}
	if (f->mode == OPEN_STEADY) {
		f->trial.congestions++;
		open_judge_loss(f, mss);
	}
	l->ssthresh = max(l->cwnd, 2 * mss);
	return f->window == before;
}

#endif
