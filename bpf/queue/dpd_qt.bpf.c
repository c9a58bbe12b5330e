// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* DPD-QT over RED in front of a device's queue. */
#include "dpd_qt.h"
#include "device.h"
