//! A port for the server, and who listens on it: between choosing a free port and the server's start another program
//! may have taken it, and would get prompts and the token.

use std::net::{Ipv4Addr, TcpListener};

/// Returns a port of the loopback that was free just now.
pub(super) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Tells whether this process is the one that listens on this port of the loopback. Where the system does not say, the
/// answer is yes.
pub(super) fn is_of(process: u32, port: u16) -> bool {
    let Ok(sockets) = std::fs::read_to_string("/proc/net/tcp") else { return true };
    let Ok(files) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return true };
    let Some(inode) = inode(&sockets, port) else { return false };
    let socket = format!("socket:[{inode}]");
    files
        .flatten()
        .any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == socket.as_str()))
}

/// Returns the inode of the socket that listens on this port, from the kernel's table.
fn inode(sockets: &str, port: u16) -> Option<&str> {
    let address = format!("0100007F:{port:04X}");
    sockets.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Local address, remote address, state (0A listens) and, behind six more, the inode.
        (fields.get(1) == Some(&address.as_str()) && fields.get(3) == Some(&"0A")).then(|| fields.get(9).copied())?
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_known_to_be_of_the_process_that_listens_on_it() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        assert!(is_of(std::process::id(), port));
        let mut other =
            std::process::Command::new("/bin/cat").stdin(std::process::Stdio::piped()).spawn().expect("cat");
        assert!(!is_of(other.id(), port));
        drop(other.stdin.take());
        other.wait().expect("it ends with its input");
        drop(listener);
        assert!(!is_of(std::process::id(), port));
    }
}
