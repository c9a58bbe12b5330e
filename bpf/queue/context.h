/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* A packet as a program at a device sees it. */
#ifndef SUIMON_QUEUE_CONTEXT_H
#define SUIMON_QUEUE_CONTEXT_H

#include "../arithmetic.h"

#define SEC(name) __attribute__((section(name), used))
#define TCX_NEXT -1
#define TCX_DROP 2
/* As they are on the wire, on a machine whose least byte comes first. */
#define ETH_P_IP 0x0008
#define ETH_P_IPV6 0xdd86

/* The context, as the kernel's interface lays it out. */
struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority, ingress_ifindex;
	u32 ifindex, tc_index, cb[5], hash, tc_classid, data, data_end, napi_id, family, remote_ip4, local_ip4;
	u32 remote_ip6[4], local_ip6[4], remote_port, local_port, data_meta;
	u64 flow_keys, tstamp;
	u32 wire_len, gso_segs;
};

#endif
