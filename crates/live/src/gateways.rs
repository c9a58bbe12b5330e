//! Gateways: each connection that one splits ends there, and a second one leads on, over the relay of `suimon gateway`.

use std::io;
use std::net::TcpStream;

use suimon_gateway::join;
use suimon_linux::Namespace;
use suimon_model::{Flow, Traffic};
use tokio::time::sleep;

use crate::endpoints::{Listener, PATIENCE, Shared, Stage};
use crate::plan::PlannedFlow;

impl Stage<'_> {
    /// Takes the connection that comes to `listener` at the gateway `host`, and carries its data on over the connection of
    /// `flow`, until the run is over.
    pub(crate) fn split(
        &self,
        host: &Namespace,
        listener: Listener,
        (flow, planned): (&Flow, &PlannedFlow),
        shared: &Shared,
    ) -> io::Result<()> {
        let (Traffic::Tcp(tcp), Listener::Tcp(listener, _)) = (&flow.traffic, listener) else {
            return Ok(());
        };
        host.enter().map_err(io::Error::other)?;
        let Some(inward) = self.accept(&listener)? else { return Ok(()) };
        let Some(outward) = self.connect(tcp, planned, shared, self.end)? else { return Ok(()) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let [radio, lan] = [outward, TcpStream::from(inward)].map(|stream| {
                stream.set_nonblocking(true)?;
                tokio::net::TcpStream::from_std(stream)
            });
            tokio::select! {
                done = join(radio?, lan?) => done,
                () = self.ends() => Ok(()),
            }
        })
    }

    async fn ends(&self) {
        while !self.is_over() {
            sleep(PATIENCE).await;
        }
    }
}
