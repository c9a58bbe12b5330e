/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Senders that fill the queue: how a flow knows that they are there, competes, and knows that they have left. */
#ifndef SUIMON_FS_AT_OPEN_RIVALS_H
#define SUIMON_FS_AT_OPEN_RIVALS_H

#include "reverse.h"
#include "varying.h"

/* (8) */
#define OPEN_COMPETE 3000000
#define OPEN_COMPETE_ON 3
/* While the window is held, others fill a queue that grows by 1 over this of its full length, and by so much; it is held for so many
 * times as long as it was from one loss to the next, and for so many periods at most. */
#define OPEN_GROWTH 8
#define OPEN_LEAST_GROWTH 2000
#define OPEN_LOSSES_TO_WAIT 4
#define OPEN_PERIODS_TO_WAIT 6
/* (10): a queue is full from 7/8 of its longest on, and far from full below 5/8. */
#define OPEN_FULL 7
#define OPEN_FAR 5
#define OPEN_ROUNDS_TO_FILL 4
#define OPEN_RETURNS 2
#define OPEN_PERIODS_BETWEEN 4
#define OPEN_ROUNDS_TO_SETTLE 8
/* (14): others fill a queue that is longer than ever in so many rounds, by 1 over this of its length, while the window falls by a
 * quarter. */
#define OPEN_ROUNDS_OF_GROWTH 12
#define OPEN_LONGER 64
#define OPEN_LEAST_LONGEST 1000

/* In drain.h. */
static __always_inline void open_begin_drain(struct fs_at_open *f, const struct open_ack *a, u8 first, u8 competing);

/* The flow itself makes the queue shorter. */
static __always_inline void open_settle(struct open_rivals *r)
{
	r->rounds = 0;
	r->far_at = 0;
	r->longest = 0;
}

/* (10), once a round of the steady mode: true where the queue has become full again and again. */
static __always_inline int open_fill(struct fs_at_open *f, u64 now, u64 q)
{
	u64 longest = max(f->longest[0], f->longest[1]);
	struct open_rivals *r = &f->rivals;

	r->rounds++;
	if (q < longest / 8 * OPEN_FAR) {
		if (r->rounds > OPEN_ROUNDS_TO_SETTLE)
			r->far_at = r->rounds;
	} else if (q >= longest / 8 * OPEN_FULL) {
		if (r->far_at && r->rounds - r->far_at >= OPEN_ROUNDS_TO_FILL) {
			r->returns = less(now, r->returned) <= OPEN_PERIODS_BETWEEN * open_period(f) ? r->returns + 1 : 1;
			r->returned = now;
		}
		r->far_at = 0;
	}
	return r->returns >= OPEN_RETURNS;
}

/* (14), once a round of the steady mode, after open_fill(): true where the queue grows on and on while the window w falls. */
static __always_inline int open_keeps_growing(struct open_rivals *r, u64 q, u64 w)
{
	if (r->rounds <= OPEN_ROUNDS_TO_SETTLE)
		return 0;
	if (!r->longest) {
		r->longest = max(q, OPEN_LEAST_LONGEST);
		r->window = w;
		r->growths = 0;
	} else if (q > r->longest + r->longest / OPEN_LONGER) {
		r->longest = q;
		r->growths++;
	} else if (q < r->longest / 4 * 3) {
		r->longest = 0;
		r->growths = 0;
	}
	return r->growths >= OPEN_ROUNDS_OF_GROWTH && w <= r->window / 4 * 3;
}

/* (10) and (14) for a round. */
static __always_inline int open_others_fill(struct fs_at_open *f, u64 now, u64 q)
{
	int returns = open_fill(f, now, q), grows = !open_varies(f) && open_keeps_growing(&f->rivals, q, f->window);

	return (returns || grows) && !f->alone.is_known;
}

/* Longest time for which the window is held, and for which a loss tells that others fill the queue. */
static __always_inline u64 open_longest_wait(const struct fs_at_open *f)
{
	return OPEN_PERIODS_TO_WAIT * open_period(f);
}

/* Whether a loss of late has told that the queue was full. */
static __always_inline int open_was_full(const struct fs_at_open *f, u64 now)
{
	return f->rivals.lost && less(now, f->rivals.lost) <= open_longest_wait(f);
}

/* (8), once a round of a held window with the queueing delay q: true where it grew since, once what a drain took out is back. */
static __always_inline int open_grows(struct open_rivals *r, u64 q, u64 full)
{
	r->rounds++;
	r->held = r->rounds <= OPEN_ROUNDS_TO_FILL ? q : min(r->held, q);
	return q > r->held + full / OPEN_GROWTH + OPEN_LEAST_GROWTH;
}

static __always_inline int open_is_full(const struct fs_at_open *f, u64 low)
{
	return open_queueing(&f->path, low) >= open_queueing(&f->path, f->rivals.full) / 8 * OPEN_FULL;
}

/* The smallest round trip of this round so far, or of the last. */
static __always_inline u64 open_low_now(const struct fs_at_open *f)
{
	return f->round.low == OPEN_NONE ? f->low : f->round.low;
}

/* No drain before `from`. */
static __always_inline void open_put_off(struct open_rivals *r, u64 from)
{
	r->drain_from = from;
	r->is_due = 0;
}

/* The algorithm below rules; open_takes_up() lets its curve begin here. */
static __always_inline void open_take_up(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	f->mode = OPEN_COMPETING;
	f->drains.last = a->now;
	open_put_off(&f->rivals, a->now + OPEN_COMPETE);
	if (a->newly_acked)
		l->cwnd = f->window + open_received(f);
	l->ssthresh = max(l->cwnd, 2 * a->mss);
}

/* Competition begins, in a queue that is taken to have been full when it was longest. */
static __always_inline void open_begin_competition(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	f->rivals.full = open_rtt_min(&f->path) + max(f->longest[0], f->longest[1]);
	f->rivals.returns = 0;
	f->drains.found = 0;
	f->window = max(f->window, 4 * a->mss);
	open_take_up(f, a, l);
}

/* A round of competition. */
static __always_inline void open_end_competing_round(struct fs_at_open *f, const struct open_ack *a, u64 low, const struct open_limits *l)
{
	u64 full = open_queueing(&f->path, f->rivals.full);

	if (open_queueing(&f->path, low) > full / 4 * 5 && !f->trial.found && !f->drains.found) {
		/* The queue was not full, so nothing tells of others: drains are counted anew. */
		f->drains.dirty = 0;
		f->window = min(open_forward_part(f, l->cwnd), max(f->rcv_bytes, 2 * a->mss));
		open_begin_drain(f, a, 0, 0);
		return;
	}
	if (f->rivals.is_due || less(a->now, max(f->drains.last, f->rivals.lost)) > 2 * open_period(f)) {
		f->window = open_forward_part(f, l->cwnd);
		open_begin_drain(f, a, 0, 1);
	}
}

/* A round in which the window is held: others fill the queue if it grows all the same. */
static __always_inline void open_end_held_round(struct fs_at_open *f, const struct open_ack *a, u64 low, struct open_limits *l)
{
	u64 wait = max(OPEN_LOSSES_TO_WAIT * f->rivals.between_losses, open_period(f));
	u64 full = open_queueing(&f->path, f->rivals.full);

	if (open_grows(&f->rivals, open_queueing(&f->path, low), full) || open_is_full(f, low)) {
		open_take_up(f, a, l);
		open_put_off(&f->rivals, a->now + OPEN_COMPETE_ON * open_period(f));
	} else if (less(a->now, f->drains.last) > min(wait, open_longest_wait(f))) {
		f->mode = OPEN_STEADY;
		f->mean_queueing = 0;
		f->window = min(f->window, max(f->rcv_bytes, 2 * a->mss));
	} else if (open_is_near_min(&f->path, low)) {
		/* The link has room: a queue that is empty isn't what the window is held for. */
		f->window += a->mss;
	}
}

/* (6) for a loss: the window gives way only where the queue is about as long as it gets. */
static __always_inline void open_judge_loss(struct fs_at_open *f, u64 mss)
{
	u64 q = open_queueing(&f->path, open_low_now(f));

	if (q > 2000 && q * 4 >= max(f->longest[0], f->longest[1]) * 3) {
		f->window = max(f->window / 8 * 7, 2 * mss);
		open_settle(&f->rivals);
	}
}

/* A loss in competition: the queue is full. */
static __always_inline void open_lose(struct fs_at_open *f, u64 now)
{
	struct open_rivals *r = &f->rivals;

	r->full = max(r->full, open_low_now(f));
	r->between_losses = less(now, r->lost);
	r->lost = now;
	r->is_due |= now >= r->drain_from;
}

/* While the window is held: whether this congestion is a full queue's. */
static __always_inline int open_is_filled(const struct fs_at_open *f, enum open_congestion kind)
{
	return kind == OPEN_MARK || (kind == OPEN_LOSS && open_is_full(f, open_low_now(f)));
}

#endif
