// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * The kernel's FS-AT as an ordinary program, for crates/linux/tests/arithmetic.rs: reads an event a line, writes its result.
 *   a NOW_US RTT_US DELIVERED FLIGHT_SIZE SND_WND APP_LIMITED    an acknowledgement
 *   p                                                            the path may be another one
 */
#include <stdio.h>

#include "../fs_at.h"

#define MIN_TARGET 8000
/* As in crates/linux/tests/arithmetic.rs. */
#define MSS 1448

int main(int argc, char **argv)
{
	struct fs_at f = {};
	char line[256];

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	u64 cwnd;
	if (sscanf(line, "%llu", &cwnd) != 1)
		return 1;
	fs_at_start(&f, cwnd, MIN_TARGET);
	while (fgets(line, sizeof(line), stdin)) {
		struct fs_at_ack a = {};
		unsigned int app_limited;

		a.mss = MSS;

		if (sscanf(line, "a %llu %u %llu %llu %llu %u", &a.now_us, &a.rtt_us, &a.delivered, &a.flight_size, &a.snd_wnd,
			   &app_limited) == 6) {
			a.app_limited = app_limited;
			fs_at_on_ack(&f, &a, MIN_TARGET);
		} else if (line[0] == 'p') {
			fs_at_forget_path(&f);
		} else {
			return 1;
		}
		printf("%llu %llu %u %d\n", f.target, f.space, f.rtt_min_us, fs_at_is_radio(&f));
	}
	return 0;
}
