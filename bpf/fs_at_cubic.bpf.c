// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* FS-AT over the kernel's own CUBIC. */
#define ALGORITHM "fs_at_cubic"

#include "fs_at_cubic.h"

SEC("struct_ops/pkts_acked")
int cubic_on_pkts_acked(u64 *ctx)
{
	cubictcp_acked((struct sock *)ctx[0], (const struct ack_sample *)ctx[1]);
	return 0;
}

#define INNER_PKTS_ACKED cubic_on_pkts_acked

#include "fs_at_control.h"
