// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* Adaptive RED in front of a device's queue. */
#include "ared.h"
#include "device.h"
