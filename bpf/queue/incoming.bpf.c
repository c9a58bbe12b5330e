// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * IP packets that come in at a device, led to the egress of an intermediate one (ifb), where they can wait. That device
 * gives each packet back to the first. What is no IP stays where it is.
 */
#include "context.h"

static long (*bpf_redirect)(u32 index, u64 flags) = (void *)23;

/* The number of the intermediate device. */
u32 target SEC(".data.target");

char _license[] SEC("license") = "Dual MPL/GPL";

SEC("tcx/ingress") int incoming(struct __sk_buff *ctx)
{
	if (ctx->protocol != ETH_P_IP && ctx->protocol != ETH_P_IPV6)
		return TCX_NEXT;
	return bpf_redirect(*(volatile u32 *)&target, 0);
}
