/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * FS-AT, Flight Size Auto Tuning (Igarashi, Yamazaki): its state and its arithmetic, without kernel and floats. This is
 * the integer twin of crates/algorithms/src/congestion/fs_at.rs in mode `printed`, and tests hold the two together bit by bit.
 * Equation numbers are the paper's; quantities are in bytes and microseconds.
 */
#ifndef SUIMON_FS_AT_H
#define SUIMON_FS_AT_H

#include "arithmetic.h"

/* s_rcv_bytes and dev_rcv_bytes are kept in 1/65536 byte, of at most 2^40 bytes, so that nothing overflows. */
#define FS_AT_FRACTION 16
#define FS_AT_MOST (1ULL << 40)

struct fs_at {
	u64 began_us;		/* the interval's */
	u64 flight_size;	/* flight_size_n of the interval */
	u64 received;		/* rcv_bytes_n-(p): confirmed so far */
	u64 s;			/* s_rcv_bytes */
	u64 dev;		/* dev_rcv_bytes */
	u64 complete_flight;	/* flight_size_n and rcv_bytes of the last complete interval */
	u64 complete_rcv;
	u64 target;		/* 0 while control is off */
	u64 space;
	u32 rtt_min_us;		/* 0 before the first sample */
	u8 in_interval;
	u8 app_limited;
	u8 averaged;
	u8 complete;
};

struct fs_at_ack {
	u64 now_us;
	u64 delivered;
	u64 flight_size;
	u64 snd_wnd;
	u32 rtt_us;		/* 0: no sample */
	u32 mss;
	u8 app_limited;
};

static __always_inline void fs_at_start(struct fs_at *f, u64 cwnd, u64 min_target)
{
	f->space = max(cwnd, min_target);
}

/* The path may be another: measurements of the old one are void, the space stays. */
static __always_inline void fs_at_forget_path(struct fs_at *f)
{
	f->rtt_min_us = 0;
	f->in_interval = 0;
	f->averaged = 0;
	f->complete = 0;
	f->target = 0;
}

/* (9): twrcv_bytes from the running mean and deviation, the deviation first; rounded to the nearest byte. */
static __always_inline u64 fs_at_smooth(struct fs_at *f, u64 rcv_bytes)
{
	u64 rcv = min(rcv_bytes, FS_AT_MOST) << FS_AT_FRACTION;
	u64 off, sum, twice = 2 * rcv;

	if (f->averaged) {
		off = f->s > rcv ? f->s - rcv : rcv - f->s;
		f->dev = (3 * f->dev + off) / 4;
		f->s = (7 * f->s + rcv) / 8;
	} else {
		/* The paper gives no start; RFC 6298, section 2.2, starts its deviation at half the first sample. */
		f->s = rcv;
		f->dev = rcv / 2;
		f->averaged = 1;
	}
	sum = f->s + 4 * f->dev;
	return (min(sum, twice) + (1ULL << (FS_AT_FRACTION - 1))) >> FS_AT_FRACTION;
}

/* (8): follow a growing BDP within the interval. */
static __always_inline void fs_at_follow_growth(struct fs_at *f, u64 received)
{
	if (f->target && f->target < 2 * received)
		f->target = 2 * received;
}

/* (5), (6) and (7), once per rtt_min. */
static __always_inline void fs_at_update_target(struct fs_at *f, u64 flight_size, u64 rcv_bytes, u64 min_target)
{
	u64 twrcv_bytes = fs_at_smooth(f, rcv_bytes);

	if (flight_size <= rcv_bytes)
		f->target = 0;
	else if (!f->target || f->target < twrcv_bytes)
		f->target = max(twrcv_bytes, min_target);
	else
		f->target = max((twrcv_bytes + f->target) / 2, min_target);
}

static __always_inline void fs_at_begin(struct fs_at *f, const struct fs_at_ack *a)
{
	f->in_interval = 1;
	f->began_us = a->now_us;
	f->flight_size = a->flight_size;
	f->received = 0;
	f->app_limited = a->app_limited;
}

static __always_inline void fs_at_judge(struct fs_at *f, const struct fs_at_ack *a, u64 min_target)
{
	if (!f->rtt_min_us)
		return;
	if (!f->in_interval) {
		fs_at_begin(f, a);
		return;
	}
	f->received += a->delivered;
	f->app_limited |= a->app_limited;
	if (a->now_us < f->began_us + f->rtt_min_us) {
		fs_at_follow_growth(f, f->received);
		return;
	}
	/*
	 * Where the sender had nothing to send, the interval tells nothing, unless more was in flight at its start than came
	 * through: then the bottleneck was busy all the time. A receiver may hold back one acknowledgement (RFC 9293, section
	 * 3.8.6.3), of two segments at most.
	 */
	if (!f->app_limited || f->flight_size > f->received + 2 * (u64)a->mss) {
		fs_at_follow_growth(f, f->received);
		fs_at_update_target(f, f->flight_size, f->received, min_target);
		f->complete_flight = f->flight_size;
		f->complete_rcv = f->received;
		f->complete = 1;
	}
	fs_at_begin(f, a);
}

/*
 * space approaches target step by step: up by the bytes that an ACK confirms (RFC 3465), down by half of them, as rate halving does.
 * While control is off, a sender that has nothing to send has no use for more (RFC 9002, section 7.8).
 */
static __always_inline void fs_at_move_space(struct fs_at *f, const struct fs_at_ack *a, u64 min_target)
{
	u64 limit = f->target ? f->target : a->snd_wnd;
	u64 target = max(limit, min_target), half = a->delivered / 2, moved;

	if (f->space <= target) {
		moved = f->space + (!f->target && a->app_limited ? 0 : a->delivered);
		f->space = min(moved, target);
	} else {
		moved = f->space > half ? f->space - half : 0;
		f->space = max(moved, target);
	}
}

static __always_inline void fs_at_on_ack(struct fs_at *f, const struct fs_at_ack *a, u64 min_target)
{
	if (a->rtt_us && (!f->rtt_min_us || a->rtt_us < f->rtt_min_us))
		f->rtt_min_us = a->rtt_us;
	fs_at_judge(f, a, min_target);
	fs_at_move_space(f, a, min_target);
}

/* Judge 3: (10) nothing was queued, so the radio caused the loss; (11) otherwise, and for marks, it is congestion. */
static __always_inline int fs_at_is_radio(const struct fs_at *f)
{
	return f->complete && f->complete_flight <= f->complete_rcv;
}

#endif
