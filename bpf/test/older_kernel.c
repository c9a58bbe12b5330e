// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * The first process of a virtual machine whose kernel gives cong_control two arguments: loads each program, sends 64 MB through
 * it over the loopback device, and prints the result. scripts/older_kernel.sh runs it.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
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

/* As crates/linux/src/congestion/load.rs does it, but without the link, which these kernels lack. */
static int load_and_send(const char *path, const char *name, int arguments)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_map *map;
	int error;

	if (!object)
		return -errno;
	bpf_object__for_each_map(map, object) {
		const char *called = bpf_map__name(map);
		size_t size;
		char *value;

		if (!strcmp(called, "ops"))
			bpf_map__set_map_flags(map, 0);
		if (strlen(called) > 7 && !strcmp(called + strlen(called) - 7, ".rodata")) {
			value = (char *)bpf_map__initial_value(map, &size);
			if (value && size >= sizeof(arguments))
				memcpy(value, &arguments, sizeof(arguments));
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

int main(void)
{
	static const char *const programs[] = { "fs_at", "fs_at_cubic", "vegas", "compound" };
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct utsname kernel;
	char path[64];

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &loopback);
	libbpf_set_print(NULL);
	uname(&kernel);
	printf("older kernel: Linux %s\n", kernel.release);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		snprintf(path, sizeof(path), "/%s.bpf.o", programs[i]);
		printf("older kernel: %s: %s\n", programs[i], strerror(-load_and_send(path, programs[i], 2)));
	}
	printf("older kernel: fs_at with four arguments: %s\n", strerror(-load_and_send("/fs_at.bpf.o", "fs_at", 4)));
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 0;
}
