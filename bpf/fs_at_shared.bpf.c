// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* FS-AT over the kernel's Reno, with one target for all connections to a client. */
#define ALGORITHM "fs_at_shared"
#define SHARED

#include "fs_at_reno.h"
#include "fs_at_control.h"
