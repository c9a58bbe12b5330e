/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * A flow that has a link of its own, whose rate varies: its flight is limited as FS-AT's (15). What others have of the link shows in
 * the time between the acknowledgements of two segments that waited in the queue one behind the other: it grows with the time
 * between their departures, by this part.
 */
#ifndef SUIMON_FS_AT_OPEN_ALONE_H
#define SUIMON_FS_AT_OPEN_ALONE_H

#include "varying.h"

/* The sums lose 1 over two to the power of this in a round. */
#define OPEN_MEMORY_BITS 6
/* A round tells by so many pairs of segments at least, and so many rounds tell enough. Times between segments count up to the last. */
#define OPEN_LEAST_PAIRS 4
#define OPEN_LEAST_ROUNDS 32
#define OPEN_LONGEST_GAP (1ULL << 20)
/* A flow becomes alone where others have less than 1 over the first of the link, and stays so while they have less than 1 over the
 * second, and the queueing delay moves by so many eighths of its length. */
#define OPEN_ALONE_BEGINS 8
#define OPEN_ALONE_STAYS 4
#define OPEN_ALONE_MOVES_EIGHTHS 1
/* For so many rounds after that the link is taken to vary: on a longer route no segment waits behind another, which looks as if others
 * had the link. */
#define OPEN_ALONE_ROUNDS_SINCE 128
/* A round trip with a queueing delay up to rtt_min over this is close to it. */
#define OPEN_CLOSE 4
/* The target of FS-AT never falls below this. */
#define OPEN_ALONE_MIN_TARGET 8000

/* An acknowledgement of a segment whose round trip took rtt, without its wait (13). */
static __always_inline void open_count_gap(struct fs_at_open *f, u64 now, u64 rtt)
{
	u64 at = open_unwaited(f, now), left = less(at, rtt), q = open_queueing(&f->path, rtt), sent, acked;
	struct open_alone *o = &f->alone;

	if (q <= open_rtt_min(&f->path) / OPEN_CLOSE)
		o->close = now;
	if (o->is_begun) {
		if (left < o->last_sent)
			return;
		sent = left - o->last_sent;
		acked = less(at, o->last_acked);
		if (sent < o->last_queueing && sent < OPEN_LONGEST_GAP && acked < OPEN_LONGEST_GAP &&
		    max(o->sent, o->acked) < OPEN_MOST_RTT) {
			o->pairs++;
			o->sent += sent;
			o->acked += acked;
			o->sent_squared += sent * sent;
			o->product += sent * acked;
		}
	}
	o->is_begun = 1;
	o->last_sent = left;
	o->last_acked = at;
	o->last_queueing = q;
}

/* Means are those of a round, so that a rate that changes more slowly is not taken for others. */
static __always_inline void open_end_gaps(struct open_alone *o)
{
	s64 covariance, variance;

	if (o->pairs >= OPEN_LEAST_PAIRS) {
		covariance = (s64)o->product - (s64)(o->sent * o->acked / o->pairs);
		variance = (s64)o->sent_squared - (s64)(o->sent * o->sent / o->pairs);
		o->covariance += covariance - (o->covariance >> OPEN_MEMORY_BITS);
		o->variance += variance - (o->variance >> OPEN_MEMORY_BITS);
		o->rounds++;
	}
	o->pairs = 0;
	o->sent = 0;
	o->acked = 0;
	o->sent_squared = 0;
	o->product = 0;
}

/* Whether others are known to have less than 1 over `parts` of the link. */
static __always_inline int open_others_have_less(const struct open_alone *o, s64 parts)
{
	return o->rounds >= OPEN_LEAST_ROUNDS && parts * o->covariance < o->variance;
}

/* Once a round: whether the flow is alone (15). */
static __always_inline void open_judge_alone(struct fs_at_open *f)
{
	struct open_alone *o = &f->alone;

	open_end_gaps(o);
	if (o->is_known)
		o->is_known = open_moves(&f->variation, OPEN_ALONE_MOVES_EIGHTHS) && open_others_have_less(o, OPEN_ALONE_STAYS);
	else
		o->is_known = open_varies(f) && open_others_have_less(o, OPEN_ALONE_BEGINS);
	o->rounds_since = o->is_known ? OPEN_ALONE_ROUNDS_SINCE : less(o->rounds_since, 1);
}

/* FS-AT's limit, which is the window where the flow is alone. */
static __always_inline void open_follow_alone(struct fs_at_open *f, const struct open_ack *a)
{
	struct fs_at *limit = &f->alone.limit;
	struct fs_at_ack ack = {
		.now_us = a->now,
		.delivered = a->delivered,
		.flight_size = a->flight_size,
		.snd_wnd = a->snd_wnd,
		.mss = a->mss,
		.app_limited = a->app_limited,
	};

	limit->rtt_min_us = open_rtt_min(&f->path);
	fs_at_judge(limit, &ack, OPEN_ALONE_MIN_TARGET);
	if (!f->alone.is_known || f->mode != OPEN_STEADY || f->trial.left)
		return;
	limit->space = f->window;
	fs_at_move_space(limit, &ack, OPEN_ALONE_MIN_TARGET);
	f->window = min(limit->space, OPEN_MOST_BYTES);
}

#endif
