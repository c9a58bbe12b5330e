// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* PIE in front of a device's queue. */
#include "pie.h"
#include "device.h"
