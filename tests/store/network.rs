//! Machines of their own as far as the network goes: namespaces, joined by a switch from which each can be cut off. What is sent then
//! is gone, and nobody is told.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::support::postgres::skip;

/// The server's place in the network; the machines have those behind it.
pub(crate) const SERVER: &str = "10.213.0.1";

/// A switch with machines at it. Dropping it removes all of them.
pub(crate) struct Network {
    name: String,
    machines: Vec<String>,
}

impl Network {
    /// Makes a switch; none, after saying so, where that is refused.
    pub(crate) fn new() -> Option<Network> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("nz{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        if !is_done(&["netns", "add", &format!("{name}-sw")]) {
            match rustix::process::geteuid().is_root() {
                true => skip("network namespaces are refused here"),
                // Nobody else may make them, so no machine can be asked for it.
                false => eprintln!("SKIPPED: only root makes network namespaces, so nothing was shown"),
            }
            return None;
        }
        let network = Network { name, machines: Vec::new() };
        let switch = network.switch();
        ip(&["-n", &switch, "link", "add", "br0", "type", "bridge"]);
        ip(&["-n", &switch, "link", "set", "br0", "up"]);
        Some(network)
    }

    fn switch(&self) -> String {
        format!("{}-sw", self.name)
    }

    /// Adds a machine, and returns the name of its namespace.
    pub(crate) fn machine(&mut self) -> String {
        let number = self.machines.len() + 1;
        let (name, switch, port) = (format!("{}-{number}", self.name), self.switch(), format!("port{number}"));
        ip(&["netns", "add", &name]);
        self.machines.push(name.clone());
        ip(&["-n", &name, "link", "add", "eth0", "type", "veth", "peer", "name", &port, "netns", &switch]);
        ip(&["-n", &name, "addr", "add", &format!("10.213.0.{number}/24"), "dev", "eth0"]);
        for link in ["lo", "eth0"] {
            ip(&["-n", &name, "link", "set", link, "up"]);
        }
        ip(&["-n", &switch, "link", "set", &port, "master", "br0", "up"]);
        name
    }

    /// Cuts a machine off, in both directions and silently.
    pub(crate) fn cut(&self, machine: &str) {
        ip(&["-n", &self.switch(), "link", "set", &self.port(machine), "nomaster"]);
    }

    /// Joins it again.
    pub(crate) fn join(&self, machine: &str) {
        ip(&["-n", &self.switch(), "link", "set", &self.port(machine), "master", "br0"]);
    }

    fn port(&self, machine: &str) -> String {
        let at = self.machines.iter().position(|name| name == machine).expect("it is one of them");
        format!("port{}", at + 1)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.machines.iter().chain([&self.switch()]) {
            is_done(&["netns", "del", name]);
        }
    }
}

/// Does something on a machine: what it opens and the threads that it starts stay there.
pub(crate) fn within<T: Send>(machine: &str, work: impl FnOnce() -> T + Send) -> T {
    let place = File::open(format!("/run/netns/{machine}")).expect("the machine is there");
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network)).expect("it is ours");
            work()
        });
        there.join().expect("it does not panic")
    })
}

#[track_caller]
fn ip(words: &[&str]) {
    let ended = Command::new("/sbin/ip").args(words).output().expect("it is installed");
    assert!(ended.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

fn is_done(words: &[&str]) -> bool {
    Command::new("/sbin/ip").args(words).output().is_ok_and(|ended| ended.status.success())
}
