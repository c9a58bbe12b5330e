//! Streams over several flows: one application gives each connection the data that a path scheduler assigns, another puts
//! it back in order.
//!
//! Both are in this process, and share the place of each chunk in the stream: nothing but the stream itself is on the
//! wire, as in a simulation. Feedback of the receiving end counts at the sender when it would have come there: after the
//! propagation delay of the way back.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use socket2::Socket;
use suimon_aggregation::{Reading, Stream};
use suimon_algorithms::Probe;
use suimon_algorithms::path::Rtt;
use suimon_link::{stream_of, stream_result};
use suimon_linux::tcp::{TcpState, tcp_state, write};
use suimon_model::{Aggregate, Scenario};
use suimon_results::AggregateResult;
use suimon_units::{Bytes, Duration, Instant};

use crate::endpoints::{Shared, Stage, is_timeout};
use crate::plan::{Plan, PlannedFlow};

/// One aggregate of a run.
#[derive(Debug)]
pub(crate) struct LiveStream<'a> {
    spec: &'a Aggregate,
    paths: Vec<LivePath<'a>>,
    stream: Mutex<Stream>,
}

/// A path of an aggregate: its flow, and the half that goes on from a gateway.
#[derive(Debug)]
struct LivePath<'a> {
    /// The place of the flow in the plan.
    index: usize,
    flow: (&'a PlannedFlow, &'a Shared),
    onward: Option<(&'a PlannedFlow, &'a Shared)>,
}

/// The sending application looks at its connections so often: a segment of 10 Mbit/s takes a little longer.
const TICK: Duration = Duration::from_millis(1);
/// It waits so long for its first flow to start before it looks whether the run is over.
const IDLE: Duration = Duration::from_millis(100);

impl<'a> LiveStream<'a> {
    /// The aggregates of `scenario`, with nothing sent so far.
    pub(crate) fn all(scenario: &'a Scenario, plan: &'a Plan, shared: &'a [Shared]) -> Vec<Self> {
        let of = |(aggregate, spec): (usize, &'a Aggregate)| {
            let indices: Vec<_> = (0..spec.flows.len()).map(|path| indices(plan, aggregate, path)).collect();
            let flows: Vec<_> =
                indices.iter().map(|(flow, onward)| (&scenario.flows[*flow], onward.is_some())).collect();
            let ends = |flow: usize| (&plan.flows[flow], &shared[flow]);
            let path = |(flow, onward): &(usize, Option<usize>)| LivePath {
                index: *flow,
                flow: ends(*flow),
                onward: onward.map(ends),
            };
            Self {
                spec,
                paths: indices.iter().map(path).collect(),
                stream: Mutex::new(stream_of(spec, &flows)),
            }
        };
        scenario.aggregates.iter().enumerate().map(of).collect()
    }

    /// What each of its connections may hold.
    pub(crate) fn send_buffer(&self) -> Bytes {
        self.spec.send_buffer
    }

    /// The place in the plan of the flow whose name errors have.
    pub(crate) fn first_flow(&self) -> usize {
        self.paths[0].index
    }

    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection of `path` has delivered `delivered` bytes in all.
    pub(crate) fn on_delivered(&self, now: Instant, path: usize, delivered: u64) {
        self.lock().on_delivered(now, path, delivered);
    }

    /// Sends the stream until the run is over.
    pub(crate) fn send(&self, stage: &Stage<'_>) -> io::Result<()> {
        let starts = self.paths.iter().map(|path| path.flow.0.start);
        let first = starts.min().unwrap_or(stage.end);
        while !stage.is_over() && stage.clock.now() < first {
            stage.clock.sleep_until(first.min(stage.clock.now() + IDLE));
        }
        let mut opened = vec![false; self.paths.len()];
        let segment = vec![0; self.lock().chunk().get() as usize];
        while !stage.is_over() && self.lock().completed().is_none() {
            let now = stage.clock.now();
            let mut stream = self.lock();
            for (path, opened) in opened.iter_mut().enumerate() {
                if !*opened && self.paths[path].flow.0.start <= now {
                    *opened = true;
                    stream.start(now, path);
                }
                self.read(now, path, &mut stream)?;
            }
            stream.produce(self.produced(now.saturating_since(first)));
            while let Some((path, len)) = stream.next(now) {
                let Some(socket) = self.paths[path].socket() else { break };
                self.write(stage, socket, &segment[..len.get() as usize], len < stream.chunk())?;
                self.read(now, path, &mut stream)?;
            }
            stream.completes(now, self.spec.size.map(Bytes::get));
            drop(stream);
            stage.clock.sleep_until(now + TICK);
        }
        Ok(())
    }

    /// Bytes that the application has produced in so much time.
    fn produced(&self, time: Duration) -> u64 {
        let most = self.spec.size.map_or(u64::MAX, Bytes::get);
        self.spec.application_rate.map_or(most, |rate| most.min(rate.amount_in(time).get()))
    }

    /// Tells `stream` what the connection of `path` has done, once there is one.
    fn read(&self, now: Instant, path: usize, stream: &mut Stream) -> io::Result<()> {
        let LivePath { flow: (flow, _), onward, .. } = &self.paths[path];
        let Some(socket) = self.paths[path].socket() else { return Ok(()) };
        let ago = |time: Duration| Instant::from_nanos(now.as_nanos().saturating_sub(time.as_nanos()));
        if let Some((onward, _)) = onward {
            stream.pass_on(now, ago(onward.way_back));
        }
        stream.on_reading(now, path, reading(&tcp_state(socket)?), Some(ago(flow.way_back)));
        Ok(())
    }

    /// Writes all of `data`, which is the last of the stream for now or a whole segment among others.
    fn write(&self, stage: &Stage<'_>, socket: &Socket, mut data: &[u8], is_last: bool) -> io::Result<()> {
        while !data.is_empty() && !stage.is_over() {
            match write(socket, data, !is_last) {
                Ok(count) => data = &data[count..],
                Err(error) if is_timeout(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether all has arrived of a stream that has a size.
    pub(crate) fn is_complete(&self) -> Option<bool> {
        self.spec.size.map(|_| self.lock().completed().is_some())
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&self, now: Instant) {
        self.lock().begin_measuring(now);
    }

    /// The name of the aggregate.
    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    /// Whether its first flow has started.
    pub(crate) fn has_started(&self) -> bool {
        self.lock().has_started()
    }

    /// Tells what is plotted of it, after an `interval`.
    pub(crate) fn sample(&self, interval: Duration, out: &mut dyn Probe) {
        self.lock().sample(interval, out);
    }

    /// Its row in a run measured from one time to another.
    pub(crate) fn result(&self, measured: (Instant, Instant)) -> AggregateResult {
        stream_result(self.spec, &mut self.lock(), measured)
    }
}

impl LivePath<'_> {
    /// The sender's socket, once it is connected, and the gateway's too.
    fn socket(&self) -> Option<&Socket> {
        let is_joined = self.onward.is_none_or(|(_, onward)| onward.socket.get().is_some());
        self.flow.1.socket.get().filter(|_| is_joined)
    }
}

/// The flow that leaves the sender over `path`, and the one that goes on from a gateway.
fn indices(plan: &Plan, aggregate: usize, path: usize) -> (usize, Option<usize>) {
    let is_of = |flow: &PlannedFlow| {
        flow.subflow.is_some_and(|subflow| (subflow.aggregate, subflow.path) == (aggregate, path))
    };
    let flow = plan.flows.iter().position(is_of).expect("a plan has the flows of each aggregate");
    match plan.halves.iter().find(|(outward, _)| *outward == flow) {
        Some((outward, inward)) => (*inward, Some(*outward)),
        None => (flow, None),
    }
}

fn reading(state: &TcpState) -> Reading {
    Reading {
        acknowledged: state.acknowledged,
        unsent: state.unsent,
        cwnd: state.cwnd,
        mss: state.mss,
        rtt: state.srtt.map(|srtt| Rtt { srtt, rttvar: state.rttvar }),
        rtt_sample: state.rtt_min,
    }
}
