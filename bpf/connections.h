/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The store, the records and the list of an algorithm's connections. Included behind struct connection, which has `id`, `counts` and
 * `records`, and behind tell_values() and on_end().
 */
#ifndef SUIMON_CONNECTIONS_H
#define SUIMON_CONNECTIONS_H

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/* A record with the fields of any event of a connection; null without a reader. */
static __always_inline struct record *record_of(struct sock *sk, struct connection *c, u8 event)
{
	struct record *r;

	if (!tracer)
		return 0;
	r = new_record(sk, c->id, c->records++, event);
	if (r)
		tell_values(&r->values, c, tcp_sk(sk));
	return r;
}

/* The connection's state, null where it has none: where the kernel sets the state of a socket that was just released, nothing starts. */
static __always_inline struct connection *known(struct sock *sk)
{
	return bpf_sk_storage_get(&connections, sk, 0, 0);
}

SEC("struct_ops/release")
int on_release(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = known(sk);
	struct record *r = c ? record_of(sk, c, EVENT_END) : 0;

	if (r)
		bpf_ringbuf_submit(r, 0);
	if (c)
		on_end(sk, c);
	bpf_sk_storage_delete(&connections, sk);
	return 0;
}

SEC("iter/bpf_sk_storage_map")
int list_connections(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct connection *c = ctx->value;
	struct sock *sk = ctx->sk;
	struct tcp_sock *tp;
	struct status s;

	if (!c || !sk || !c->id)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	__builtin_memset(&s, 0, sizeof(s));
	s.connection = c->id;
	s.counts = c->counts;
	tell_values(&s.values, c, tp);
	describe(&s, tp);
	bpf_seq_write(ctx->meta->seq, &s, sizeof(s));
	return 0;
}

char _license[] SEC("license") = "GPL";

#endif
