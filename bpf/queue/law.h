/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* What a law is given, and what it gives. */
#ifndef SUIMON_QUEUE_LAW_H
#define SUIMON_QUEUE_LAW_H

#include "fixed.h"

/* Set by the loader, in this order; crates/linux/src/queue writes them. */
struct settings {
	u64 bytes_per_second;
	u64 buffer_bytes;
	u64 seed;
	u64 words[8];
	struct tables tables;
};

/* A packet that arrives, and the queue that it finds. Without the header of the link. */
struct packet {
	u64 now;
	u64 backlog_bytes;
	u64 backlog_packets;
	u64 size;
	u32 flow;
	/* The two bits of ECN: 0 where the transport does not understand marks. */
	u16 ecn;
	/* 1 where it opens a TCP connection and the law has a use for that. */
	u16 opens;
};

enum { VERDICT_PASS, VERDICT_MARK, VERDICT_DROP, VERDICT_OVERFLOW };

/* Advice is a probability in parts of ONE, or one of these. */
#define ADVICE_CALM (~0ULL)
#define ADVICE_DROP (~0ULL - 1)

enum { INDEPENDENT, UNIFORM, WAIT };

/* Inner values that are worth seeing; zero where a law has none. */
struct shown {
	/* In parts of ONE. */
	u64 probability;
	u64 rtt_ns;
	/* In 1/65536. */
	u64 flows;
	u64 average_bytes;
	/* In parts of ONE. */
	u64 heaviest_share;
};

#endif
