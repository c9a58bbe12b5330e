// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * On a kernel that gives cong_control two arguments: loads each program of a folder, sends 64 MB through it over the loopback
 * device, and prints the result. scripts/older_kernel.sh runs it.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (64L << 20)

static int transfer(const char *name)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	static char data[1 << 16];
	int listener = socket(AF_INET, SOCK_STREAM, 0), near, far, status;
	long got = 0, count;

	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 1) ||
	    getsockname(listener, (void *)&address, &length))
		return -errno;
	if (!fork()) {
		long sent = 0;

		near = socket(AF_INET, SOCK_STREAM, 0);
		if (setsockopt(near, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name)) ||
		    connect(near, (void *)&address, sizeof(address)))
			exit(1);
		while (sent < SIZE && (count = write(near, data, sizeof(data))) > 0)
			sent += count;
		exit(sent != SIZE);
	}
	far = accept(listener, NULL, NULL);
	while ((count = read(far, data, sizeof(data))) > 0)
		got += count;
	close(far);
	close(listener);
	wait(&status);
	return got == SIZE && status == 0 ? 0 : -EIO;
}

/* These kernels lack the operation: null in place of its program's address lets libbpf leave it out. */
static void leave_out_tx_start(struct bpf_object *object, struct bpf_map *ops)
{
	struct bpf_program *program, **operations;
	size_t size;

	operations = bpf_map__initial_value(ops, &size);
	bpf_object__for_each_program(program, object)
		for (size_t i = 0; i < size / sizeof(*operations); i++)
			if (!strcmp(bpf_program__section_name(program), "struct_ops/cwnd_event_tx_start") &&
			    operations[i] == program)
				operations[i] = NULL;
}

/* As crates/linux/src/congestion/load.rs does it, but without the link, which these kernels lack. */
static int load_and_send(const char *path, const char *name, unsigned int arguments)
{
	/* The second says that these kernels lack cwnd_event_tx_start. */
	unsigned int this_kernel[2] = { arguments, 0 };
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_map *map;
	int error;

	if (!object)
		return -errno;
	bpf_object__for_each_map(map, object) {
		const char *called = bpf_map__name(map);
		size_t size;
		char *value;

		if (!strcmp(called, "ops")) {
			bpf_map__set_map_flags(map, 0);
			leave_out_tx_start(object, map);
		}
		if (strstr(called, ".rodata.kernel")) {
			value = (char *)bpf_map__initial_value(map, &size);
			if (value && size >= sizeof(this_kernel))
				memcpy(value, this_kernel, sizeof(this_kernel));
		}
	}
	error = bpf_object__load(object);
	if (!error) {
		map = bpf_object__find_map_by_name(object, "ops");
		if (!bpf_map__attach_struct_ops(map))
			error = -errno;
	}
	if (!error)
		error = transfer(name);
	return error;
}

int main(int argc, char **argv)
{
	static const char *const programs[] = { "fs_at", "fs_at_cubic", "fs_at_shared", "fs_at_open", "vegas", "compound" };
	struct utsname kernel;
	char path[4096];

	if (argc != 2)
		return 2;
	/* The child of each transfer has a copy of what is not written yet. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	libbpf_set_print(NULL);
	uname(&kernel);
	printf("older kernel: Linux %s\n", kernel.release);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		snprintf(path, sizeof(path), "%s/%s.bpf.o", argv[1], programs[i]);
		printf("older kernel: %s: %s\n", programs[i], strerror(-load_and_send(path, programs[i], 2)));
	}
	snprintf(path, sizeof(path), "%s/fs_at.bpf.o", argv[1]);
	printf("older kernel: fs_at with four arguments: %s\n", strerror(-load_and_send(path, "fs_at", 4)));
	return 0;
}
