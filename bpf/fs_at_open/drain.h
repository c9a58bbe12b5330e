/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* How flows leave the queue together, and what its floor tells them. */
#ifndef SUIMON_FS_AT_OPEN_DRAIN_H
#define SUIMON_FS_AT_OPEN_DRAIN_H

#include "course.h"
#include "rivals.h"
#include "trial.h"

/* (4): so many times the flow's own backlog less than rcv_bytes, for a queue up to rtt_min over the other. */
#define OPEN_DRAIN 3
#define OPEN_MOST_QUEUE 4
#define OPEN_DRAIN_WAIT 100000
#define OPEN_FALLING_ROUNDS 8
#define OPEN_ROUNDS_TO_REFILL 2
/* Where the round trip falls by 1 over this in a round, a queue is being left. */
#define OPEN_FALL 16
/* The second drain comes this part of a period after slow start; for so many periods a flow gives way to the drains of others, and
 * leaves as little as it can in its own if it began in a queue. */
#define OPEN_SECOND 4
#define OPEN_YOUNG 3
/* A queue that comes down to its mean over this is left by others; the next drain is timed from when it was last so low. */
#define OPEN_LOW_PART 4
/* Where a drain is due within this part of a period, and the queue falls below so many quarters, others begin to leave it. */
#define OPEN_SOON 32
#define OPEN_LEFT_QUARTERS 3
/* Periods between drains where the link varies (12). */
#define OPEN_PERIODS_VARYING 3
/* (8) */
#define OPEN_LONG_QUEUE 50000
#define OPEN_LONG_PART 4
#define OPEN_LONGEST_PART 8
#define OPEN_LEAST_SEGMENTS 8
#define OPEN_FALLEN_PART 8
#define OPEN_STAYING_QUARTERS 3
#define OPEN_STAYING_QUEUE 15000
#define OPEN_STAYING_PART 8
#define OPEN_GROWN_QUARTERS 5
#define OPEN_DIRTY_DRAINS 3
#define OPEN_RETRY_TENTHS 7

/* Whether round trips fall as those of a queue do that is being left. */
static __always_inline int open_falls(u64 before, u64 low)
{
	return low < before - before / OPEN_FALL;
}

static __always_inline int open_is_young(const struct fs_at_open *f, u64 now)
{
	return now < f->drains.grown + OPEN_YOUNG * open_period(f);
}

/* What a drain leaves in flight, where round trips of `before` came before it. */
static __always_inline u64 open_drain_target(const struct fs_at_open *f, u64 before, const struct open_ack *a)
{
	u64 rtt_min = open_rtt_min(&f->path), q = min(open_queueing(&f->path, before), rtt_min / OPEN_MOST_QUEUE);
	u64 target = less(f->rcv_bytes, share_of(f->rcv_bytes, OPEN_DRAIN * q, rtt_min));

	if (open_began_in_queue(&f->path) && open_is_young(f, a->now))
		target = 0;
	return max(target, 2 * a->mss);
}

/* Begins to leave the queue. */
static __always_inline void open_begin_drain(struct fs_at_open *f, const struct open_ack *a, u8 first, u8 competing)
{
	__builtin_memset(&f->drain, 0, sizeof(f->drain));
	f->mode = OPEN_DRAINING;
	f->drain.first = first;
	f->drain.competing = competing;
	f->drain.before = open_low_now(f);
	f->drain.floor = OPEN_NONE;
	f->drain.target = open_drain_target(f, f->drain.before, a);
	open_begin_round(f, a);
}

/* Long after the last round trip near rtt_min, or once soon after slow start, whose drain may have come while others filled the queue. */
static __always_inline int open_is_drain_due(struct fs_at_open *f, u64 now)
{
	if (f->drains.awaits_second && now >= f->drains.grown + open_period(f) / OPEN_SECOND) {
		f->drains.awaits_second = 0;
		return 1;
	}
	if (f->alone.is_known)
		return open_is_far_since(f, now, f->drains.last);
	/* The queue of a link that varies is short again and again by itself. */
	return less(now, f->path.renewed) > (open_varies(f) ? OPEN_PERIODS_VARYING : 1) * open_period(f);
}

/* Takes a round trip into the path's measurement, and keeps the drains of all flows in step. */
static __always_inline void open_measure(struct fs_at_open *f, u64 now, u64 rtt)
{
	int is_soon = less(now, f->path.renewed) > open_period(f) - open_period(f) / OPEN_SOON;
	u64 q;

	open_sample_path(&f->path, now, rtt, open_period_of_memory(f, now));
	q = open_queueing(&f->path, rtt);
	f->drains.others_leave = is_soon && !open_varies(f) && q < f->queueing / 4 * OPEN_LEFT_QUARTERS;
	if (q > f->mean_queueing / OPEN_LOW_PART)
		return;
	if ((f->mode == OPEN_DRAINING && !f->drain.competing) || (f->mode == OPEN_STEADY && f->drains.resting))
		f->path.renewed = now;
	else if (f->mode == OPEN_STEADY)
		f->drains.others_left = 1;
}

/* Whether a drain begins with this acknowledgement, and not only with a round: it is due, or others begin theirs. */
static __always_inline int open_drains_at_once(struct fs_at_open *f, u64 now)
{
	return f->mode == OPEN_STEADY && !f->trial.left && !f->drains.resting && !f->round.app_limited && !open_is_young(f, now) &&
	       (f->drains.others_leave || open_is_drain_due(f, now));
}

/* Whether others leave the queue in this round, which had `last` before `low`: a young flow lets them. */
static __always_inline int open_gives_way(const struct fs_at_open *f, u64 now, u64 last, u64 low)
{
	return open_is_young(f, now) && open_is_near_min(&f->path, low) && open_falls(last, low);
}

/* Others leave the queue, which this flow took for a part of the path: it leaves too, and finds anew how deep. */
static __always_inline void open_join_drain(struct fs_at_open *f, const struct open_ack *a)
{
	struct open_drain *d = &f->drain;

	if (!f->low)
		return;
	if (f->mode == OPEN_STEADY && !f->trial.left)
		open_begin_drain(f, a, 0, 0);
	if (f->mode != OPEN_DRAINING || d->competing)
		return;
	if (!d->joined)
		d->joined = f->low;
	f->rcv_bytes = share_of(f->window, open_rtt_min(&f->path), d->joined);
	d->target = open_drain_target(f, d->joined, a);
}

/* (8): drain after drain the queue stays, and it does not shrink. Where the link varies (12), its gaps do that too. */
static __always_inline int open_is_beside_others(struct fs_at_open *f)
{
	int shrinks = f->mean_queueing < f->drains.dirty_queueing / 8 * 7;

	f->drains.dirty = shrinks ? 1 : f->drains.dirty + 1;
	f->drains.dirty_queueing = f->mean_queueing;
	return f->drains.dirty >= OPEN_DIRTY_DRAINS && !open_varies(f);
}

/* The next drain comes soon. */
static __always_inline void open_drain_again(struct fs_at_open *f, u64 now)
{
	f->path.renewed = less(now, open_period(f) / 10 * (10 - OPEN_RETRY_TENTHS));
}

/* Whether a long queue was there before a drain that left `left` of it, and remains. */
static __always_inline int open_remains_long(const struct fs_at_open *f, u64 left)
{
	u64 held = max(OPEN_LONG_QUEUE, max(f->longest[0], f->longest[1]) / OPEN_LONGEST_PART);

	return !f->drain.first && (f->drain.competing || f->mean_queueing > held) &&
	       left > max(OPEN_LONG_QUEUE / 2, open_rtt_min(&f->path) / OPEN_LONG_PART);
}

/* Whether nearly all of the queue stays, `left`, where the flow leaves it: others hold it, which do not drain. */
static __always_inline int open_stays(const struct fs_at_open *f, u64 left, u64 mss)
{
	return !f->drain.first && !f->drain.competing &&
	       (f->window >= OPEN_LEAST_SEGMENTS * mss || OPEN_FALLEN_PART * f->window <= f->drains.emptied) &&
	       left > max(OPEN_STAYING_QUEUE, open_rtt_min(&f->path) / OPEN_STAYING_PART) &&
	       4 * left > OPEN_STAYING_QUARTERS * min(f->queueing, f->mean_queueing);
}

static __always_inline void open_end_drain(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	u64 mss = a->mss, floor = f->drain.floor, left = floor == OPEN_NONE ? 0 : open_queueing(&f->path, floor);
	u64 others_left = f->drains.others_left;
	int stays = open_stays(f, left, mss);
	/* In a slow start. */
	int grows = 4 * left > OPEN_GROWN_QUARTERS * max(f->queueing, f->mean_queueing);

	f->drains.others_left = 0;
	f->mode = OPEN_STEADY;
	if (f->path.renewed < f->drain.reached)
		f->path.renewed = a->now;
	if (f->drain.joined && open_began_in_queue(&f->path))
		f->window = max(min(f->window, open_fit(f, mss, f->drain.joined)), 2 * mss);
	if (!stays && !open_remains_long(f, left)) {
		f->drains.dirty = 0;
		if (!f->drain.competing)
			f->drains.emptied = f->window;
		if (f->drain.competing && !f->trial.found) {
			f->mode = OPEN_HOLDING;
			/* Without a loss nothing has told that the queue is full: hold no more than the path does. */
			if (!open_was_full(f, a->now))
				f->window = min(f->window, max(f->rcv_bytes, 2 * mss));
		}
	} else if (f->drain.competing) {
		open_take_up(f, a, l);
	} else if (!grows && !others_left && open_is_beside_others(f)) {
		open_begin_competition(f, a, l);
		f->drains.found = stays;
	} else {
		open_drain_again(f, a->now);
	}
	if (f->mode == OPEN_STEADY && (f->trial.found || open_is_trial_due(f, a->now, mss)))
		open_begin_trial(f, a, l);
	l->ssthresh = max(f->window, 2 * mss);
	l->cwnd = min(l->cwnd, l->ssthresh);
	f->drains.last = a->now;
	f->rivals.is_due = 0;
	open_settle(&f->rivals);
	f->longest[1] = f->longest[0];
	f->longest[0] = 0;
	f->drains.resting = OPEN_ROUNDS_TO_REFILL;
	open_begin_round(f, a);
}

/* (4), for an acknowledgement */
static __always_inline void open_advance_drain(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	struct open_drain *d = &f->drain;
	u64 low = f->round.low;

	if (!d->is_down) {
		if (a->flight_size <= d->target + open_received(f)) {
			d->is_down = 1;
			d->reached = a->now;
			d->before = min(d->before, low);
			open_begin_round(f, a);
		}
		return;
	}
	d->floor = min(d->floor, low);
	if (!open_is_over(&f->round, a))
		return;
	if (d->rounds < OPEN_FALLING_ROUNDS && low != OPEN_NONE && open_falls(d->before, low)) {
		/* Others leave the queue too: stay with them until it is empty. */
		d->before = low;
		d->rounds++;
		open_begin_round(f, a);
	} else if ((open_is_near_min(&f->path, d->floor) && !d->joined) ||
		   less(a->now, d->reached) >= max(OPEN_DRAIN_WAIT, open_rtt_min(&f->path))) {
		open_end_drain(f, a, l);
	}
}

#endif
