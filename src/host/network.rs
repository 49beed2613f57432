//! How nietz reaches servers: which certificates it trusts, and by which proxies it goes.
//!
//! The roots of the public web are compiled in, because reading those of the system would cost more than the rest of the start
//! together. Those of the user's variables and of the system are added when a certificate needs them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::{NoProxy, Proxy, Url};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};

use crate::error::{Code, Failure, Result};

/// How long connecting may take, with finding the address and the first exchange of TLS.
pub(in crate::host) const CONNECT_LIMIT: Duration = Duration::from_secs(4);

/// The addresses of this machine itself, which no proxy can reach.
const THIS_MACHINE: &str = "localhost,127.0.0.0/8,::1";

/// What the user's variables say of the network: `SSL_CERT_FILE`, `SSL_CERT_DIR`, `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`,
/// `NO_PROXY`, the proxies' in lower case, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    certificate_file: Option<PathBuf>,
    certificate_folders: Vec<PathBuf>,
    proxies: Vec<ProxySetting>,
    /// What `NO_PROXY` says, and the name under which it was found.
    exceptions: Option<(String, String)>,
}

/// A proxy that a variable names.
#[derive(Clone, Debug)]
struct ProxySetting {
    variable: String,
    /// Without a user and a password.
    shown: String,
    proxy: Proxy,
}

/// What is used of the user's network, for people to see. It holds no secrets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NetworkFacts {
    /// The authorities that are compiled in, and those of the system and of the user's variables.
    pub(crate) built_in: usize,
    pub(crate) added: usize,
    /// The variables that name certificates, with what they name.
    pub(crate) named: Vec<(&'static str, String)>,
    /// What could not be read of certificates.
    pub(crate) unread: Vec<String>,
    /// Each proxy's variable and address.
    pub(crate) proxies: Vec<(String, String)>,
    /// The variable with addresses that are reached without a proxy, and those addresses.
    pub(crate) exceptions: Option<(String, String)>,
}

impl Network {
    /// Reads the variables. Certificates are read when they are needed.
    ///
    /// # Errors
    ///
    /// `config-invalid` if a variable does not name a proxy.
    pub(crate) fn from_environment(variables: &BTreeMap<String, String>) -> Result<Network> {
        let value = |name: &str| variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let folders = value("SSL_CERT_DIR").map(|folders| std::env::split_paths(folders).collect());
        Ok(Network {
            certificate_file: value("SSL_CERT_FILE").map(PathBuf::from),
            certificate_folders: folders.unwrap_or_default(),
            proxies: proxies(variables)?,
            exceptions: variable(variables, "NO_PROXY").map(|(value, name)| (name, value)),
        })
    }

    /// Returns what is used, after reading all certificates.
    pub(crate) fn facts(&self) -> NetworkFacts {
        let (added, unread) = self.more_roots();
        let file = self.certificate_file.iter().map(|file| ("SSL_CERT_FILE", file.display().to_string()));
        let folders = self.certificate_folders.iter().map(|folder| ("SSL_CERT_DIR", folder.display().to_string()));
        NetworkFacts {
            built_in: webpki_roots::TLS_SERVER_ROOTS.len(),
            added: added.len(),
            named: file.chain(folders).collect(),
            unread,
            proxies: self.proxies.iter().map(|it| (it.variable.clone(), it.shown.clone())).collect(),
            exceptions: self.exceptions.clone(),
        }
    }

    /// Returns the beginning of an HTTP client.
    ///
    /// # Errors
    ///
    /// `internal` if TLS cannot be set up.
    pub(in crate::host) fn client(&self) -> Result<reqwest::ClientBuilder> {
        let tls = self.tls()?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT_LIMIT)
            .user_agent(concat!("nietz/", env!("CARGO_PKG_VERSION")))
            // Those of the process would count otherwise, whatever the settings say.
            .no_proxy();
        Ok(self.proxies.iter().map(|it| it.proxy.clone()).fold(client, reqwest::ClientBuilder::proxy))
    }

    /// Returns how connections are encrypted, with all certificates that are trusted.
    ///
    /// # Errors
    ///
    /// `internal` if TLS cannot be set up.
    pub(crate) fn tls(&self) -> Result<rustls::ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier {
            public: verifier(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(), &provider)?,
            wider: OnceLock::new(),
            network: self.clone(),
            provider: Arc::clone(&provider),
        };
        Ok(rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth())
    }

    /// Returns the roots of the user's variables and of the system, and what could not be read.
    fn more_roots(&self) -> (Vec<CertificateDer<'static>>, Vec<String>) {
        let mut found = rustls_native_certs::load_native_certs();
        let mut wrong: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        let named = self.certificate_file.iter().map(|file| (Some(file), None));
        let named = named.chain(self.certificate_folders.iter().map(|folder| (None, Some(folder))));
        for (file, folder) in named {
            let more =
                rustls_native_certs::load_certs_from_paths(file.map(PathBuf::as_path), folder.map(PathBuf::as_path));
            wrong.extend(more.errors.iter().map(ToString::to_string));
            found.certs.extend(more.certs);
        }
        (found.certs, wrong)
    }
}

fn unusable(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Internal, format!("cannot set up TLS: {error}"))
}

fn verifier(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unusable(&error))
}

/// Returns a variable of the network, in lower case or upper case, and the name under which it was found.
fn variable(variables: &BTreeMap<String, String>, name: &str) -> Option<(String, String)> {
    [name.to_ascii_lowercase(), name.to_owned()]
        .into_iter()
        .find_map(|name| Some((variables.get(&name)?.trim().to_owned(), name)))
        .filter(|(value, _)| !value.is_empty())
}

fn proxies(variables: &BTreeMap<String, String>) -> Result<Vec<ProxySetting>> {
    let exceptions = variable(variables, "NO_PROXY").map(|(value, _)| value).unwrap_or_default();
    let exceptions = NoProxy::from_string(&format!("{exceptions},{THIS_MACHINE}"));
    let mut proxies = Vec::new();
    for kind in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] {
        let Some((address, name)) = variable(variables, kind) else { continue };
        let address = if address.contains("://") { address } else { format!("http://{address}") };
        let shown = shown(&address);
        let proxy = match kind {
            "HTTPS_PROXY" => Proxy::https(address),
            "HTTP_PROXY" => Proxy::http(address),
            _ => Proxy::all(address),
        };
        let proxy = proxy.map_err(|_| {
            // The address may hold a password, so it is not shown.
            Failure::new(Code::ConfigInvalid, format!("{name} is not the address of a proxy"))
                .hint("write it like http://proxy.example:3128, or unset it")
        })?;
        proxies.push(ProxySetting { variable: name, shown, proxy: proxy.no_proxy(exceptions.clone()) });
    }
    Ok(proxies)
}

/// Returns an address without a user and a password.
fn shown(address: &str) -> String {
    let parts = Url::parse(address)
        .ok()
        .and_then(|url| Some((url.scheme().to_owned(), url.host_str()?.to_owned(), url.port())));
    match parts {
        Some((scheme, host, Some(port))) => format!("{scheme}://{host}:{port}"),
        Some((scheme, host, None)) => format!("{scheme}://{host}"),
        None => "an address".to_owned(),
    }
}

/// Returns an address that may be written to: by a secret channel, or on this machine.
///
/// # Errors
///
/// Why it is none.
pub(in crate::host) fn safe_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user or password in it would be sent unseen: a key of its own is the way".to_owned());
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_here => Ok(url),
        "http" => Err("http goes to this machine only (127.0.0.1, localhost); use https".to_owned()),
        _ => Err("it must begin with https://".to_owned()),
    }
}

/// Returns the part of an address that messages show.
pub(in crate::host) fn place(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// Trusts what the public web trusts, and what the user's variables and system do.
#[derive(Debug)]
struct Verifier {
    public: Arc<WebPkiServerVerifier>,
    /// With all roots; read when a certificate's issuer is no public one.
    wider: OnceLock<WiderVerifier>,
    network: Network,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
struct WiderVerifier {
    /// `None` if none can be made of the roots.
    verifier: Option<Arc<WebPkiServerVerifier>>,
    /// What could not be read.
    unread: Vec<String>,
}

impl Verifier {
    fn wider(&self) -> &WiderVerifier {
        self.wider.get_or_init(|| {
            let (found, mut unread) = self.network.more_roots();
            let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
            // A system may hold roots of long ago, which cannot be read.
            roots.add_parsable_certificates(found);
            let verifier = verifier(roots, &self.provider).map_err(|failure| unread.push(failure.message)).ok();
            WiderVerifier { verifier, unread }
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let by = |verifier: &WebPkiServerVerifier| {
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        };
        match by(&self.public) {
            Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {}
            outcome => return outcome,
        }
        let wider = self.wider();
        match wider.verifier.as_deref().map(by) {
            None | Some(Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))) => {
                let error = UntrustedIssuer { unread: wider.unread.clone() };
                Err(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error)))))
            }
            Some(outcome) => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.public.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.public.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.public.supported_verify_schemes()
    }
}

/// Nobody whom this machine trusts has issued the certificate.
#[derive(Debug)]
struct UntrustedIssuer {
    /// What could not be read of the user's and the system's roots.
    unread: Vec<String>,
}

impl std::error::Error for UntrustedIssuer {}

impl std::fmt::Display for UntrustedIssuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("its issuer is not trusted here")
    }
}

/// What is wrong with a server's certificate.
pub(in crate::host) struct CertificateFault {
    pub(in crate::host) why: String,
    /// What could not be read of the user's and the system's roots.
    pub(in crate::host) unread: Vec<String>,
}

/// Returns what is wrong with a server's certificate, if that is why a request failed.
pub(in crate::host) fn certificate_fault(error: &reqwest::Error) -> Option<CertificateFault> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let inner = inner.map(|inner| inner as &(dyn std::error::Error + 'static));
        let tls = error.downcast_ref::<rustls::Error>().or_else(|| inner?.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::InvalidCertificate(why)) = tls {
            let unread = match why {
                CertificateError::Other(other) => {
                    other.0.downcast_ref::<UntrustedIssuer>().map(|issuer| issuer.unread.clone())
                }
                _ => None,
            };
            let why = match why {
                CertificateError::Other(other) => other.0.to_string(),
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    "it is not valid yet; look at this machine's clock".to_owned()
                }
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    "it is another server's".to_owned()
                }
                why => why.to_string(),
            };
            return Some(CertificateFault { why, unread: unread.unwrap_or_default() });
        }
        cause = inner.or_else(|| error.source());
    }
    None
}

/// Returns whether a server refused the connection.
pub(in crate::host) fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}
