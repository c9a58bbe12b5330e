// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* SRED in front of a device's queue. */
#include "sred.h"
#include "device.h"
