//! Servers between a client and the model service: one that speaks TLS with a company's certificate, and a proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A server on a thread of its own, for as long as the test runs.
pub(crate) struct Between {
    pub(crate) address: SocketAddr,
    /// The first line of each request to a proxy.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Between {
    /// Speaks TLS as `models.company.test`, with a certificate of the company's own authority, and passes on to a server.
    pub(crate) fn tls(server: SocketAddr) -> Between {
        Between::tls_as("server", server)
    }

    /// Speaks TLS as the providers of models do at their own addresses, with a certificate of `providers-ca.pem`.
    pub(crate) fn providers(server: SocketAddr) -> Between {
        Between::tls_as("providers", server)
    }

    fn tls_as(name: &str, server: SocketAddr) -> Between {
        let certificates: Vec<_> = CertificateDer::pem_file_iter(sample(&format!("{name}.pem")))
            .expect("the sample is there")
            .collect::<Result<_, _>>()
            .expect("it is a certificate");
        let key = PrivateKeyDer::from_pem_file(sample(&format!("{name}.key"))).expect("the sample is a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS")
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .expect("key and certificate belong together");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        start(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                let mut inside = acceptor.accept(stream).await?;
                copy_bidirectional(&mut inside, &mut TcpStream::connect(server).await?).await?;
                Ok(())
            }
        })
    }

    /// A proxy that leads to this server, whatever host it is asked for.
    pub(crate) fn proxy(server: SocketAddr) -> Between {
        start(move |mut stream, seen| async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            let first = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
            let tunnel = first.starts_with("CONNECT ");
            seen.lock().expect("nobody panics while it is held").push(first);
            let mut onward = TcpStream::connect(server).await?;
            if tunnel {
                stream.write_all(b"HTTP/1.1 200 Established\r\n\r\n").await?;
            } else {
                onward.write_all(&head).await?;
            }
            copy_bidirectional(&mut stream, &mut onward).await?;
            Ok(())
        })
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("nobody panics while it is held").clone()
    }
}

fn start<F>(serve: impl Fn(TcpStream, Arc<Mutex<Vec<String>>>) -> F + Send + 'static) -> Between
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    listener.set_nonblocking(true).expect("a socket can be made so");
    let address = listener.local_addr().expect("a bound socket has an address");
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let shared = Arc::clone(&seen);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).expect("it is a listener");
            while let Ok((stream, _)) = listener.accept().await {
                // A client that goes away, or does not trust the server, is the test's matter.
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
    });
    Between { address, seen }
}

/// Returns a file of the company's: `ca.pem`, its authority, or what the server has; or of the providers' (`providers.sh`).
pub(crate) fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/tls").join(name)
}
