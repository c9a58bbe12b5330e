// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* RTT-AQM in front of a device's queue. */
#include "rtt_aqm.h"
#include "device.h"
