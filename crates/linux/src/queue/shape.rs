//! A device whose rate a program chooses while it runs, with a policy in front of its queue.

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;
use suimon_units::{Bytes, Rate};
use zerocopy::IntoBytes;

use super::error::QueueError;
use super::load::{self, Options, SETTINGS, map};
use super::qdisc::{self, Device};
use super::{Counts, Loaded, Policy, find_loaded, unload};

/// A device that is shaped. What was put there goes with this value, and by [`end_shaping`] where the process is killed.
#[derive(Debug)]
pub struct ShapedDevice {
    device: Device,
    loaded: Loaded,
    settings: Vec<u64>,
    rate: Rate,
    room: Bytes,
}

/// Gives a device a queue of the rate, and puts `policy` in front of it.
///
/// # Errors
/// The errors are those of [`super::load()`]. What was there then stays.
pub fn shape(policy: &'static Policy, options: &Options) -> Result<ShapedDevice, QueueError> {
    super::support::require()?;
    let device = load::find_device(&options.device)?;
    load::check_qdisc(&device, false)?;
    let room = load::room(options);
    let made = qdisc::add_class(&device, options.rate, room);
    let loaded = made
        .map_err(|error| QueueError::refused("a queue whose rate can change (HTB)", error))
        .and_then(|()| load::load(policy, &Options { in_front_of: true, ..options.clone() }));
    match loaded {
        Ok(loaded) => {
            let settings = options.settings.clone();
            Ok(ShapedDevice { device, loaded, settings, rate: options.rate, room })
        }
        Err(error) => {
            // Not there, or not to stay.
            let _ = qdisc::remove_ours(device.index);
            Err(error)
        }
    }
}

impl ShapedDevice {
    /// The rate from now on, of the queue and for the policy.
    ///
    /// # Errors
    /// The device is gone, or somebody took the queue away.
    pub fn set_rate(&mut self, rate: Rate) -> Result<(), QueueError> {
        if rate == self.rate {
            return Ok(());
        }
        qdisc::change_class(&self.device, rate)
            .map_err(|error| QueueError::refused("another rate", error))?;
        // The first word: see `struct settings` of `bpf/queue/law.h`.
        self.settings[0] = (rate.as_bps() / 8).max(1);
        let path = self.loaded.folder.join(SETTINGS);
        let told = map(&path)?.update(&[0; 4], self.settings.as_bytes(), MapFlags::ANY);
        told.map_err(|error| QueueError::pin(&path, error))?;
        self.rate = rate;
        Ok(())
    }

    /// Room for packets that wait.
    #[must_use]
    pub fn room(&self) -> Bytes {
        self.room
    }

    /// What the policy has counted.
    ///
    /// # Errors
    /// The pin cannot be read.
    pub fn counts(&self) -> Result<Counts, QueueError> {
        self.loaded.counts()
    }
}

impl Drop for ShapedDevice {
    fn drop(&mut self) {
        // Gone with its device, or by somebody's hand.
        let _ = unload(&self.loaded);
        let _ = qdisc::remove_ours(self.device.index);
    }
}

/// Takes away what a process that shaped `device` and was killed has left there, and nothing of others.
pub fn end_shaping(device: &str) {
    let shaped = |device: &Device| {
        qdisc::root_of(device).ok().flatten().as_ref().is_some_and(qdisc::Root::is_our_class)
    };
    if let Ok(device) = load::find_device(device)
        && shaped(&device)
    {
        if let Ok(loaded) = find_loaded(&device.name) {
            let _ = unload(&loaded);
        }
        let _ = qdisc::remove_ours(device.index);
    }
}
