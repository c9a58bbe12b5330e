/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* REM: crates/algorithms/src/queue/integer/rem.rs in C, line by line; the reasons stand there. */
#ifndef SUIMON_QUEUE_REM_H
#define SUIMON_QUEUE_REM_H

#include "law.h"

#define DISTANCES INDEPENDENT
#define POINT 56
#define MAX_EXPONENT (64ULL << POINT)
#define MAX_QUEUE (1ULL << 26)
#define MAX_ARRIVED (1ULL << 37)
#define MAX_LATE (1ULL << 25)

/* The words of the settings. */
enum { TARGET, BYTE, ALPHA, PERIOD };

struct law {
	u64 next_update;
	u64 arrived;
	u64 exponent;
	u64 probability;
};

static __always_inline void raise(struct law *law, u64 byte, u64 up, u64 down, u64 periods)
{
	u64 gain = less(up, down) * periods, loss = less(down, up) * periods, each = max(byte, 1);

	if (gain > (MAX_EXPONENT - law->exponent) / each)
		law->exponent = MAX_EXPONENT;
	else if (loss > law->exponent / each)
		law->exponent = 0;
	else
		law->exponent = law->exponent + gain * byte - loss * byte;
}

static __always_inline void catch_up(struct law *law, const volatile struct settings *s, u64 now, u64 queue)
{
	u64 period = max(s->words[PERIOD], 1), late, up, down;

	if (now < law->next_update)
		return;
	late = (now - law->next_update) / period;
	law->next_update += period * (late + 1);
	up = (s->words[ALPHA] * min(queue, MAX_QUEUE)) >> 32;
	down = ((s->words[ALPHA] * s->words[TARGET]) >> 32) + s->bytes_per_second * period / 1000000000;
	raise(law, s->words[BYTE], up + law->arrived, down, 1);
	raise(law, s->words[BYTE], up, down, min(late, MAX_LATE));
	law->arrived = 0;
	law->probability = ONE - power_of_half(&s->tables, law->exponent >> (POINT - 32));
}

static __always_inline u64 law_advise(struct law *law, const volatile struct settings *s, const struct packet *packet, u64 *random)
{
	catch_up(law, s, packet->now, packet->backlog_bytes);
	law->arrived = min(law->arrived + packet->size, MAX_ARRIVED);
	return law->probability;
}

static __always_inline void law_on_verdict(struct law *law, const volatile struct settings *s, const struct packet *packet, u32 verdict)
{
}

static __always_inline void law_show(const struct law *law, const volatile struct settings *s, struct shown *shown)
{
	shown->probability = law->probability;
}

#endif
