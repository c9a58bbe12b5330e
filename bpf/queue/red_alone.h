/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* RED with nothing over it. */
#ifndef SUIMON_QUEUE_RED_ALONE_H
#define SUIMON_QUEUE_RED_ALONE_H

#include "red.h"

#define DISTANCES UNIFORM

struct law {
	struct red red;
};

static __always_inline u64 law_advise(struct law *law, const volatile struct settings *s, const struct packet *packet, u64 *random)
{
	red_on_arrival(&law->red, s, packet);
	return red_advice(&law->red, s);
}

static __always_inline void law_on_verdict(struct law *law, const volatile struct settings *s, const struct packet *packet, u32 verdict)
{
}

static __always_inline void law_show(const struct law *law, const volatile struct settings *s, struct shown *shown)
{
	red_show(&law->red, s, shown);
}

#endif
