/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Traffic the other way: an acknowledgement waits in its queue, and this wait is no queue of the flow's own (13). */
#ifndef SUIMON_FS_AT_OPEN_REVERSE_H
#define SUIMON_FS_AT_OPEN_REVERSE_H

#include "path.h"

/* A tick of the peer's clock; two clocks drift apart by no more than 1 over the next; their difference stays above zero by the last. */
#define OPEN_TICK 1000
#define OPEN_DRIFT 10000
#define OPEN_OFFSET (1ULL << 40)
/* A wait longer than rtt_min over this tells of traffic the other way, for so long. */
#define OPEN_NOTABLE 8
#define OPEN_LATELY 1000000
/* Beside such traffic data leaves at so many quarters of the rate that the window stands for, and the window grows to no more than was
 * used and 1 over the next, and four segments. */
#define OPEN_PACING_QUARTERS 5
#define OPEN_MORE 4

/* An acknowledgement came at `now` with the time `ts_val` of the peer's clock. */
static __always_inline void open_hear(struct open_way_back *b, u64 now, u32 ts_val)
{
	int is_first = !b->shortest;
	u64 way, rise, ticks;
	s32 since;

	if (is_first) {
		b->first = ts_val;
		b->rose = now;
	}
	/* Signed, since acknowledgements may change places. */
	since = ts_val - b->first;
	ticks = since < 0 ? 0 : since;
	way = max(less(now + OPEN_OFFSET, ticks * OPEN_TICK), 1);
	rise = less(now, b->rose) / OPEN_DRIFT;
	b->rose += rise * OPEN_DRIFT;
	b->shortest = is_first ? way : min(b->shortest + rise, way);
	/* A clock shows the time of its last tick. */
	b->wait = min(less(way - b->shortest, OPEN_TICK), OPEN_MOST_RTT);
}

/* Takes in the peer's time, where an acknowledgement has it. */
static __always_inline void open_hear_peer(struct fs_at_open *f, const struct open_ack *a)
{
	if (a->ts_val && !f->way_back.is_strange)
		open_hear(&f->way_back, a->now, a->ts_val);
}

/* The round trip without the wait of its acknowledgement. */
static __always_inline u64 open_without_wait(struct fs_at_open *f, u64 now, u64 rtt)
{
	struct open_way_back *b = &f->way_back;

	if (b->wait >= rtt) {
		/* No acknowledgement waits for longer than its round trip took: the clock ticks otherwise. */
		__builtin_memset(b, 0, sizeof(*b));
		b->is_strange = 1;
		__builtin_memset(&f->path, 0, sizeof(f->path));
		return rtt;
	}
	if (b->wait > open_rtt_min(&f->path) / OPEN_NOTABLE)
		b->busy_until = now + OPEN_LATELY;
	return rtt - b->wait;
}

static __always_inline int open_is_busy(const struct fs_at_open *f, u64 now)
{
	return now < f->way_back.busy_until;
}

/* The round trip of the last round, through the queue on the way of the data, without a wait on the way back. */
static __always_inline u64 open_rtt_without_wait(const struct fs_at_open *f)
{
	return open_rtt_min(&f->path) + f->queueing;
}

/* Bytes that the peer has, and whose acknowledgements wait: they fill no queue on the way to the peer. */
static __always_inline u64 open_received(const struct fs_at_open *f)
{
	return share_of(f->window, f->way_back.wait, open_rtt_without_wait(f));
}

/* What of a window is not for such bytes. */
static __always_inline u64 open_forward_part(const struct fs_at_open *f, u64 window)
{
	u64 rtt = max(open_rtt_without_wait(f), 1);

	return share_of(window, rtt, rtt + f->way_back.wait);
}

/* Bytes a second at which data leaves beside traffic the other way, since acknowledgements come in bursts there; 0: at once. */
static __always_inline u64 open_pacing(const struct fs_at_open *f, u64 now, u64 mss)
{
	u64 window = max(f->window, 2 * mss);

	if (!open_is_busy(f, now) || f->mode == OPEN_STARTUP || f->mode == OPEN_COMPETING)
		return 0;
	return share_of(window * OPEN_PACING_QUARTERS / 4, 1000000, open_rtt_without_wait(f));
}

/* Where a round that took `elapsed` confirmed less in `low` than the window was `before`, the window was not used, and it does not grow. */
static __always_inline void open_limit_growth(struct fs_at_open *f, u64 before, u64 mss, u64 low, u64 elapsed)
{
	u64 used = share_of(f->round.delivered, low, elapsed), most = max(used + used / OPEN_MORE + 4 * mss, before);

	f->window = min(f->window, most);
}

#endif
